#include "workflows/report/run_comparison.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/message_text.h"
#include "base/terminal/progress.h"
#include "base/text/printable.h"
#include "base/text/requant_version.h"
#include "workflows/report/figures.h"
#include "workflows/report/html_page.h"

namespace requant {
namespace {

// --- What differs.

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

// Returns a text such as "stage a, b and 12 others".
std::string NameList(const std::string& kind,
                     const std::vector<std::string>& names) {
  constexpr int kMostListed = 4;
  const auto end = names.begin() + std::min<size_t>(names.size(), kMostListed);
  std::string list = absl::StrCat(kind, kind.empty() ? "" : " ",
                                  absl::StrJoin(names.begin(), end, ", "));
  if (end == names.end()) return list;
  const auto others = names.end() - end;
  return absl::StrCat(list, " and ", others,
                      others == 1 ? " other" : " others");
}

void CompareFacts(RunComparison* comparison) {
  // In the order in which the runs first have them.
  std::vector<RunFact> facts;
  std::map<std::pair<std::string, std::string>, std::vector<std::string>>
      values;
  for (size_t i = 0; i < comparison->runs.size(); ++i) {
    for (const RunFact& fact : comparison->runs[i].facts) {
      auto& of_fact = values[{fact.kind, fact.name}];
      if (of_fact.empty()) facts.push_back(fact);
      of_fact.resize(comparison->runs.size());
      of_fact[i] = fact.value;
    }
  }
  // Files that many stages read are one difference, as is all of a kind that
  // the same runs lack: its place, by kind and values.
  std::map<std::pair<std::string, std::vector<std::string>>, size_t> places;
  std::vector<RunDifference>& differences = comparison->differences;
  std::vector<std::vector<std::string>> names;
  for (const RunFact& fact : facts) {
    const auto& of_fact = values[{fact.kind, fact.name}];
    if (absl::c_count(of_fact, of_fact[0]) == of_fact.size()) continue;
    const bool is_lacking = absl::c_linear_search(of_fact, "");
    if (fact.kind == "input" || (is_lacking && !fact.kind.empty())) {
      std::vector<std::string> shared = of_fact;
      for (std::string& value : shared) {
        if (is_lacking && !value.empty()) value = "has these";
      }
      const auto [found, is_new] =
          places.emplace(std::pair(fact.kind, shared), differences.size());
      if (!is_new) {
        names[found->second].push_back(fact.name);
        differences[found->second].values = shared;
        continue;
      }
    }
    differences.push_back({fact.kind, of_fact});
    names.push_back({fact.name});
  }
  for (size_t i = 0; i < names.size(); ++i) {
    differences[i].what = NameList(differences[i].what, names[i]);
  }
}

// More (1) or less (-1) of these figures is better. The others depend on more
// than the graph, and are not judged.
constexpr std::pair<std::string_view, int> kBetter[] = {
    {"accuracy", 1},
    {"difference_points", 1},
    {"agreement", 1},
    {"mean_output_change", -1},
    {"mse", -1}};

// Returns 1 or -1 if the stage's figure is certainly better or worse than that
// of `first`, which may be null, else 0.
int Change(const Figure& figure, const ComparedStage* first,
           const ComparedStage& stage) {
  const auto* const better = absl::c_find_if(
      kBetter, [&](const auto& entry) { return entry.first == figure.key; });
  if (first == nullptr || first == &stage || better == std::end(kBetter) ||
      stage.verified_on.empty() || stage.verified_on.count("") > 0 ||
      stage.verified_on != first->verified_on) {
    return 0;
  }
  const auto before = first->figures.find(figure.key);
  const auto now = stage.figures.find(figure.key);
  if (before == first->figures.end() || now == stage.figures.end() ||
      !before->second.interval || !now->second.interval) {
    return 0;
  }
  const Interval &old = *before->second.interval, &own = *now->second.interval;
  return own.low() > old.high()   ? better->second
         : own.high() < old.low() ? -better->second
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
  table.AddColumn("outcome", Table::kAlways, /*left=*/true);
  table.AddColumn("workflow", 3, /*left=*/true);
  table.AddColumn("started", 0, /*left=*/true);
  table.AddColumn("time", 1);
  table.AddColumn("last compared", 2, /*left=*/true);
  table.AddColumn("times as fast", 5);
  table.AddColumn("times smaller", 4);
  for (size_t i = 0; i < runs.size(); ++i) {
    const ComparedRun& run = runs[i];
    table.AddRow(
        {{absl::StrCat(i + 1)},
         {run.path},
         Outcome(run.outcome),
         {run.workflow},
         {run.started.substr(0, run.started.find('.'))},
         {HumanDuration(run.seconds)},
         {run.final_stage},
         {RatioText(run.speed)},
         {run.size_ratio ? absl::StrFormat("%.2f", *run.size_ratio) : ""}});
  }
  return table;
}

// Returns a table without the stages that have nothing to compare in any run,
// such as those that make records.
Table StagesTable(const std::vector<ComparedRun>& runs) {
  Table table;
  table.AddColumn("stage", Table::kAlways, /*left=*/true);
  table.AddColumn("run", Table::kAlways);
  // The columns are those of the table at a run's end.
  for (const Figure& figure : Figures()) {
    if (TitleOf(figure) == nullptr) continue;
    table.AddColumn(TitleOf(figure), figure.column.importance);
  }
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
      for (const Figure& figure : Figures()) {
        if (TitleOf(figure) == nullptr) continue;
        cells.push_back(FigureCell(figure, FindStage(runs[0], name), *stage));
      }
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

// --- The parts of text and page.

// What is shown, in this order.
struct Part {
  std::string title;
  Table table;
  // What follows the table.
  std::vector<std::string> sentences;
};

std::vector<Part> PartsOf(const RunComparison& comparison) {
  const std::vector<ComparedRun>& runs = comparison.runs;
  std::vector<Part> parts = {
      {"Runs", RunsTable(runs), {}},
      {"Stages",
       StagesTable(runs),
       {"A figure is called better or worse than that of run 1 if both were "
        "measured on the same records and baseline and their 95 % intervals do "
        "not overlap."}},
      {"What differs", DifferencesTable(comparison.differences), {}}};
  for (size_t i = 0; i < runs.size(); ++i) {
    for (const std::string& remark : runs[i].remarks) {
      parts[0].sentences.push_back(absl::StrCat("Run ", i + 1, ": ", remark));
    }
  }
  if (comparison.differences.empty()) {
    parts[2].sentences.push_back("Nothing that the runs were given differs.");
  }
  return parts;
}

std::string CellHtml(const StyledText& cell) {
  const std::string text = EscapedHtml(cell.text);
  const std::string_view kind = cell.style == Style::kGood       ? "good"
                                : cell.style == Style::kDoubtful ? "doubt"
                                : cell.style == Style::kBad      ? "bad"
                                                                 : "";
  if (kind.empty()) return text;
  return absl::StrCat("<span class=\"badge ", kind, "\">", text, "</span>");
}

std::string TableHtml(const Table& table, std::string_view label) {
  std::string html = absl::StrCat(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"",
      label, "\"><table><thead><tr>");
  const auto& columns = table.columns();
  for (const Table::Column& column : columns) {
    if (column.width == 0) continue;
    absl::StrAppend(&html, "<th scope=\"col\"",
                    column.left ? " class=\"left\"" : "", ">", column.title,
                    "</th>");
  }
  absl::StrAppend(&html, "</tr></thead><tbody>\n");
  for (const std::vector<StyledText>& row : table.rows()) {
    absl::StrAppend(&html, "<tr><th scope=\"row\"",
                    columns[0].left ? " class=\"whole\">" : ">",
                    CellHtml(row[0]), "</th>");
    for (size_t i = 1; i < row.size(); ++i) {
      if (columns[i].width == 0) continue;
      absl::StrAppend(&html, columns[i].left ? "<td class=\"left\">" : "<td>",
                      CellHtml(row[i]), "</td>");
    }
    absl::StrAppend(&html, "</tr>\n");
  }
  return absl::StrCat(html, "</tbody></table></div>\n");
}

}  // namespace

RunComparison CompareRuns(std::vector<ComparedRun> runs) {
  RunComparison comparison;
  comparison.runs = std::move(runs);
  CompareFacts(&comparison);
  return comparison;
}

std::string ComparisonText(const RunComparison& comparison, int columns,
                           bool color) {
  std::string text;
  for (const auto& [title, table, sentences] : PartsOf(comparison)) {
    if (!text.empty()) absl::StrAppend(&text, "\n", title, ":\n");
    if (!table.rows().empty()) text += table.Text(columns, color);
    for (const std::string& sentence : sentences) {
      AppendWrapped(sentence, 0, &text);
    }
  }
  return text;
}

std::string ComparisonHtml(const RunComparison& comparison) {
  const std::string title =
      absl::StrCat(comparison.runs.size(), " runs side by side");
  std::string body = absl::StrCat(
      "<header class=\"top\"><div class=\"brand\"><b>Requant</b></div><h1>",
      title, "</h1></header>\n<main class=\"space\">\n");
  for (const auto& [name, table, sentences] : PartsOf(comparison)) {
    absl::StrAppend(&body, "<section class=\"card\"><h2>", name, "</h2>\n");
    if (!table.rows().empty()) body += TableHtml(table, name);
    for (const std::string& sentence : sentences) {
      absl::StrAppend(&body, "<p class=\"small space\">", EscapedHtml(sentence),
                      "</p>\n");
    }
    body += "</section>\n";
  }
  return HtmlPage(absl::StrCat(title, " – Requant"), kRequantVersion,
                  body + "</main>\n");
}

}  // namespace requant
