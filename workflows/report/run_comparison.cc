#include "workflows/report/run_comparison.h"

#include <algorithm>
#include <string_view>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/json.h"
#include "base/message_text.h"
#include "base/terminal/progress.h"
#include "base/text/printable.h"
#include "base/text/requant_version.h"
#include "workflows/report/figures.h"
#include "workflows/report/html_page.h"

namespace requant {
namespace {

constexpr char kBetterOrWorse[] =
    "\"better\" and \"worse\" are against run 1, on the same records and "
    "baseline, where the 95 % intervals have nothing in common.";

// --- What differs.

std::string CompareValues(std::string what, std::vector<std::string> values,
                          RunComparison* comparison) {
  const bool same = absl::c_all_of(
      values, [&](const std::string& value) { return value == values[0]; });
  if (same) return values[0];
  comparison->differences.push_back({std::move(what), std::move(values)});
  return "";
}

void CompareFacts(RunComparison* comparison) {
  std::vector<std::string> names;
  for (const ComparedRun& run : comparison->runs) {
    for (const auto& [name, value] : run.facts) {
      if (!absl::c_linear_search(names, name)) names.push_back(name);
    }
  }
  int variables = 0;
  for (const std::string& name : names) {
    std::vector<std::string> values;
    for (const ComparedRun& run : comparison->runs) {
      const auto fact = absl::c_find_if(
          run.facts, [&](const auto& fact) { return fact.first == name; });
      values.push_back(fact == run.facts.end() ? "" : fact->second);
    }
    const std::string same = CompareValues(name, values, comparison);
    if (same.empty()) continue;
    if (absl::StartsWith(name, "variable ")) {
      ++variables;
    } else {
      comparison->same.push_back(absl::StrCat(name, " ", same));
    }
  }
  if (variables > 0) {
    comparison->same.push_back(CountText(variables, "variable"));
  }
}

// Files are the same if their contents are, whatever their names.
void CompareInputs(RunComparison* comparison) {
  const std::vector<ComparedRun>& runs = comparison->runs;
  int same = 0;
  // What each run read that another did not, by what for.
  std::map<std::string, std::vector<std::string>> others;
  for (size_t i = 0; i < runs.size(); ++i) {
    for (const auto& [digest, input] : runs[i].inputs) {
      if (absl::c_all_of(runs, [&](const ComparedRun& run) {
            return run.inputs.count(digest) > 0;
          })) {
        same += i == 0;
        continue;
      }
      auto& values = others[input.first];
      values.resize(runs.size());
      absl::StrAppend(&values[i], values[i].empty() ? "" : "; ", input.second);
    }
  }
  for (auto& [what, values] : others) {
    comparison->differences.push_back({what, std::move(values)});
  }
  if (same > 0)
    comparison->same.push_back(CountText(same, "file that was read"));
}

const ComparedStage* FindStage(const ComparedRun& run, std::string_view name) {
  const auto found = absl::c_find_if(
      run.stages, [&](const auto& stage) { return stage.name == name; });
  return found == run.stages.end() ? nullptr : &*found;
}

// Returns the stages of all runs, in the order of the first that has them.
std::vector<std::string> StageNames(const std::vector<ComparedRun>& runs) {
  std::vector<std::string> names;
  for (const ComparedRun& run : runs) {
    for (const ComparedStage& stage : run.stages) {
      if (!absl::c_linear_search(names, stage.name)) {
        names.push_back(stage.name);
      }
    }
  }
  return names;
}

void CompareStages(RunComparison* comparison) {
  std::vector<std::string> values(comparison->runs.size());
  for (const std::string& name : StageNames(comparison->runs)) {
    if (absl::c_all_of(comparison->runs, [&](const ComparedRun& run) {
          return FindStage(run, name) != nullptr;
        })) {
      continue;
    }
    for (size_t i = 0; i < values.size(); ++i) {
      if (FindStage(comparison->runs[i], name) == nullptr) continue;
      absl::StrAppend(&values[i], values[i].empty() ? "" : ", ", name);
    }
  }
  CompareValues("stages that others lack", values, comparison);
}

// Returns 1 or -1 if the stage's figure is certainly better or worse than that
// of `first`, which may be null, else 0.
int Change(const Figure& figure, const ComparedStage* first,
           const ComparedStage& stage) {
  if (first == nullptr || first == &stage || figure.better == 0 ||
      stage.verified_on.empty() || stage.verified_on != first->verified_on) {
    return 0;
  }
  const auto before = first->figures.find(figure.key);
  const auto now = stage.figures.find(figure.key);
  if (before == first->figures.end() || now == stage.figures.end() ||
      !before->second.interval || !now->second.interval) {
    return 0;
  }
  const Interval &old = *before->second.interval, &own = *now->second.interval;
  return own.low() > old.high()   ? figure.better
         : own.high() < old.low() ? -figure.better
                                  : 0;
}

// --- Tables.

StyledText FigureCell(const Figure& figure, const ComparedStage* first,
                      const ComparedStage& stage) {
  const auto found = stage.figures.find(figure.key);
  if (found == stage.figures.end()) return {};
  const std::string text = figure.text(found->second.value);
  const int change = Change(figure, first, stage);
  if (change == 0) return {text};
  return {absl::StrCat(change > 0 ? "better " : "worse ", text),
          change > 0 ? Style::kGood : Style::kBad};
}

// Returns the word with the color of an outcome, a verdict or a state.
StyledText Outcome(std::string_view word) {
  const Style style = word == "pass" || word == "passed" ? Style::kGood
                      : word == "inconclusive" || word == "interrupted" ||
                              word == "running" || word == "unknown"
                          ? Style::kDoubtful
                      : absl::StartsWith(word, "fail") || word == "gate_failed"
                          ? Style::kBad
                          : Style::kPlain;
  return {absl::StrReplaceAll(word, {{"_", " "}}), style};
}

const char* TitleOf(const Figure& figure) {
  return figure.is_ratio ? "speed" : figure.column.title;
}

// The titles and the importance of figures are those of the table at a run's
// end.
void AddFigureColumns(Table* table) {
  for (const Figure& figure : Figures()) {
    if (TitleOf(figure) == nullptr) continue;
    table->AddColumn(TitleOf(figure), figure.column.importance);
  }
}

void AddFigureCells(const ComparedStage* first, const ComparedStage& stage,
                    std::vector<StyledText>* cells) {
  for (const Figure& figure : Figures()) {
    if (TitleOf(figure) == nullptr) continue;
    cells->push_back(FigureCell(figure, first, stage));
  }
}

std::string RatioText(const std::optional<Estimate>& ratio) {
  if (!ratio) return "";
  std::string text = absl::StrFormat("%.2f", ratio->value);
  if (ratio->interval) {
    absl::StrAppendFormat(&text, " [%.2f, %.2f]", ratio->interval->low(),
                          ratio->interval->high());
  }
  return text;
}

Table RunsTable(const std::vector<ComparedRun>& runs) {
  Table table;
  table.AddColumn("run", Table::kAlways);
  table.AddColumn("folder", Table::kAlways, /*left=*/true);
  table.AddColumn("workflow", 3, /*left=*/true);
  table.AddColumn("started", 0, /*left=*/true);
  table.AddColumn("time", 1);
  table.AddColumn("outcome", Table::kAlways, /*left=*/true);
  table.AddColumn("last compared", 2, /*left=*/true);
  table.AddColumn("times as fast", 5);
  table.AddColumn("times smaller", 4);
  for (size_t i = 0; i < runs.size(); ++i) {
    const ComparedRun& run = runs[i];
    table.AddRow(
        {{absl::StrCat(i + 1)},
         {run.path},
         {run.workflow},
         {run.started.substr(0, run.started.find('.'))},
         {HumanDuration(run.seconds)},
         Outcome(run.outcome),
         {run.final_stage},
         {RatioText(run.speed)},
         {run.size_ratio ? absl::StrFormat("%.2f", *run.size_ratio) : ""}});
  }
  return table;
}

// Has no stages that have nothing to compare in any run, such as those that
// make records.
Table StagesTable(const std::vector<ComparedRun>& runs) {
  Table table;
  table.AddColumn("stage", Table::kAlways, /*left=*/true);
  table.AddColumn("run", Table::kAlways);
  AddFigureColumns(&table);
  table.AddColumn("size", 4);
  table.AddColumn("result", Table::kAlways, /*left=*/true);
  for (const std::string& name : StageNames(runs)) {
    std::vector<std::vector<StyledText>> rows;
    bool is_compared = false;
    for (size_t i = 0; i < runs.size(); ++i) {
      const ComparedStage* const stage = FindStage(runs[i], name);
      if (stage == nullptr) continue;
      is_compared |= !stage->figures.empty() || stage->bytes ||
                     Outcome(stage->state).style != Style::kPlain;
      std::vector<StyledText> cells = {{name}, {absl::StrCat(i + 1)}};
      AddFigureCells(FindStage(runs[0], name), *stage, &cells);
      cells.push_back({stage->bytes ? SizeText(*stage->bytes) : ""});
      cells.push_back(
          Outcome(stage->verdict.empty() ? stage->state : stage->verdict));
      rows.push_back(std::move(cells));
    }
    if (!is_compared) continue;
    for (auto& row : rows) table.AddRow(std::move(row));
  }
  return table;
}

Table DifferencesTable(const std::vector<RunDifference>& differences) {
  Table table;
  table.AddColumn("what", Table::kAlways, /*left=*/true);
  table.AddColumn("run", Table::kAlways, /*left=*/true);
  table.AddColumn("is", Table::kAlways, /*left=*/true);
  for (const auto& [what, values] : differences) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::find(values.begin(), values.begin() + i, values[i]) !=
          values.begin() + i) {
        continue;
      }
      std::vector<size_t> runs;
      for (size_t j = i; j < values.size(); ++j) {
        if (values[j] == values[i]) runs.push_back(j + 1);
      }
      table.AddRow({{what},
                    {absl::StrJoin(runs, ", ")},
                    {values[i].empty() ? "none" : values[i]}});
    }
  }
  return table;
}

bool HasChange(const Table& table) {
  return absl::c_any_of(table.rows(), [](const auto& row) {
    return absl::c_any_of(row, [](const StyledText& cell) {
      return absl::StartsWith(cell.text, "better ") ||
             absl::StartsWith(cell.text, "worse ");
    });
  });
}

// --- HTML.

std::string CellHtml(const StyledText& cell) {
  const std::string text = EscapedHtml(cell.text);
  const std::string_view kind = cell.style == Style::kGood       ? "good"
                                : cell.style == Style::kDoubtful ? "doubt"
                                : cell.style == Style::kBad      ? "bad"
                                                                 : "";
  if (kind.empty()) return text;
  return absl::StrCat("<span class=\"badge ", kind, "\">", text, "</span>");
}

std::string TableHtml(const Table& table, std::string_view caption) {
  std::string html = absl::StrCat(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"",
      caption, "\"><table><caption>", caption, "</caption><thead><tr>");
  const auto& columns = table.columns();
  for (const Table::Column& column : columns) {
    if (column.width == 0) continue;
    absl::StrAppend(&html, "<th scope=\"col\"",
                    column.left ? " class=\"left\"" : "", ">", column.title,
                    "</th>");
  }
  absl::StrAppend(&html, "</tr></thead><tbody>\n");
  for (const std::vector<StyledText>& row : table.rows()) {
    absl::StrAppend(&html, "<tr>");
    for (size_t i = 0; i < row.size(); ++i) {
      if (columns[i].width == 0) continue;
      absl::StrAppend(&html,
                      i == 0            ? "<th scope=\"row\">"
                      : columns[i].left ? "<td class=\"left\">"
                                        : "<td>",
                      CellHtml(row[i]), i == 0 ? "</th>" : "</td>");
    }
    absl::StrAppend(&html, "</tr>\n");
  }
  return absl::StrCat(html, "</tbody></table></div>\n");
}

std::string Section(std::string_view title, std::string_view content) {
  return absl::StrCat("<section class=\"card\"><h2>", title, "</h2>\n", content,
                      "</section>\n");
}

std::string RemarksHtml(const std::vector<ComparedRun>& runs) {
  std::string items;
  for (size_t i = 0; i < runs.size(); ++i) {
    for (const std::string& remark : runs[i].remarks) {
      absl::StrAppend(&items, "<li><b>run ", i + 1,
                      "</b>: ", EscapedHtml(remark), "</li>\n");
    }
  }
  if (items.empty()) return "";
  return absl::StrCat("<ul class=\"problems\">", items, "</ul>\n");
}

// --- JSON.

std::string EstimateJson(const std::optional<Estimate>& estimate) {
  if (!estimate) return "null";
  return JsonObject(
      {{"value", JsonNumber(estimate->value)},
       {"interval_95", estimate->interval
                           ? JsonArray({JsonNumber(estimate->interval->low()),
                                        JsonNumber(estimate->interval->high())})
                           : "null"}});
}

std::string StageJson(const ComparedStage* first, const ComparedStage& stage) {
  std::vector<std::pair<std::string, std::string>> members = {
      {"name", JsonString(stage.name)},
      {"state", JsonString(stage.state)},
      {"verdict", stage.verdict.empty() ? "null" : JsonString(stage.verdict)},
      {"seconds", JsonNumber(stage.seconds)},
      {"bytes", stage.bytes ? absl::StrCat(*stage.bytes) : "null"}};
  std::vector<std::string> better, worse;
  for (const Figure& figure : Figures()) {
    const auto found = stage.figures.find(figure.key);
    members.emplace_back(figure.key, found == stage.figures.end()
                                         ? "null"
                                         : EstimateJson(found->second));
    const int change = Change(figure, first, stage);
    if (change > 0) better.push_back(figure.key);
    if (change < 0) worse.push_back(figure.key);
  }
  members.emplace_back("better", JsonArrayOf(better, JsonString));
  members.emplace_back("worse", JsonArrayOf(worse, JsonString));
  return JsonObject(members);
}

std::string RunJson(const ComparedRun& first, const ComparedRun& run) {
  return JsonObject(
      {{"folder", JsonString(run.path)},
       {"workflow", JsonString(run.workflow)},
       {"outcome", JsonString(run.outcome)},
       {"started", JsonString(run.started)},
       {"seconds", JsonNumber(run.seconds)},
       {"remarks", JsonArrayOf(run.remarks, JsonString)},
       {"final_stage",
        run.final_stage.empty() ? "null" : JsonString(run.final_stage)},
       {"speed", EstimateJson(run.speed)},
       {"size_ratio", run.size_ratio ? JsonNumber(*run.size_ratio) : "null"},
       {"stages", JsonArrayOf(run.stages, [&](const ComparedStage& stage) {
          return StageJson(FindStage(first, stage.name), stage);
        })}});
}

}  // namespace

RunComparison CompareRuns(std::vector<ComparedRun> runs) {
  RunComparison comparison;
  comparison.runs = std::move(runs);
  CompareFacts(&comparison);
  CompareInputs(&comparison);
  CompareStages(&comparison);
  return comparison;
}

std::string ComparisonText(const RunComparison& comparison, int columns,
                           bool color) {
  const std::vector<ComparedRun>& runs = comparison.runs;
  std::string text = RunsTable(runs).Text(columns, color);
  for (size_t i = 0; i < runs.size(); ++i) {
    for (const std::string& remark : runs[i].remarks) {
      AppendWrapped(absl::StrCat("run ", i + 1, ": ", remark), 2, &text);
    }
  }
  const Table stages = StagesTable(runs);
  if (!stages.rows().empty()) {
    absl::StrAppend(&text, "\n", stages.Text(columns, color));
  }
  if (HasChange(stages)) AppendWrapped(kBetterOrWorse, 0, &text);
  text += "\n";
  if (comparison.differences.empty()) {
    absl::StrAppend(&text, "Nothing differs in what was given to the runs.\n");
  } else {
    absl::StrAppend(
        &text, "What differs:\n",
        DifferencesTable(comparison.differences).Text(columns, color));
  }
  if (!comparison.same.empty()) {
    AppendWrapped(
        absl::StrCat("The same in all: ", absl::StrJoin(comparison.same, ", ")),
        0, &text);
  }
  return text;
}

std::string ComparisonJson(const RunComparison& comparison) {
  const auto difference = [](const RunDifference& difference) {
    return JsonObject({{"what", JsonString(difference.what)},
                       {"values", JsonArrayOf(difference.values, JsonString)}});
  };
  return IndentedJson(JsonObject(
      {{"format", JsonString("requant comparison 1")},
       {"runs", JsonArrayOf(comparison.runs,
                            [&](const ComparedRun& run) {
                              return RunJson(comparison.runs[0], run);
                            })},
       {"differences", JsonArrayOf(comparison.differences, difference)},
       {"same", JsonArrayOf(comparison.same, JsonString)}}));
}

std::string ComparisonHtml(const RunComparison& comparison) {
  const std::string title =
      absl::StrCat(comparison.runs.size(), " runs side by side");
  const Table stages = StagesTable(comparison.runs);
  const std::string note =
      HasChange(stages) ? absl::StrCat("<p class=\"quiet small\">",
                                       EscapedHtml(kBetterOrWorse), "</p>\n")
                        : "";
  const std::string same =
      comparison.same.empty()
          ? ""
          : absl::StrCat("<p class=\"quiet small space\">The same in all: ",
                         EscapedHtml(absl::StrJoin(comparison.same, ", ")),
                         "</p>\n");
  const std::string differences =
      comparison.differences.empty()
          ? "<p>Nothing differs in what was given to the runs.</p>\n"
          : TableHtml(DifferencesTable(comparison.differences),
                      "What differs, and in which runs");
  return HtmlPage(
      absl::StrCat(title, " – Requant"), kRequantVersion,
      absl::StrCat(
          "<header class=\"top\"><div class=\"brand\"><b>Requant</b></div><h1>",
          title, "</h1>\n", RemarksHtml(comparison.runs),
          "</header>\n<main class=\"space\">\n",
          Section("Runs", TableHtml(RunsTable(comparison.runs),
                                    "Outcome, and speed and size of the last "
                                    "stage against its baseline")),
          stages.rows().empty()
              ? ""
              : Section("Stages",
                        note + TableHtml(stages, "Every stage, run by run")),
          Section("What differs", differences + same), "</main>\n"));
}

}  // namespace requant
