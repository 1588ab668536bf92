// Shows plans as lists, graphs and data.

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/json.h"
#include "base/message_text.h"
#include "base/text/printable.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "workflows/language/stage_fields.h"
#include "workflows/plan/plan.h"

namespace requant {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;

const Stage& StageOf(const Plan& plan, const Task& task) {
  return plan.file.workflow.stage(task.stage);
}

// Returns the stage's summary, or a few words about its kind.
std::string TaskSummary(const Plan& plan, const Task& task) {
  if (task.kind == Task::Kind::kBaseline) return "run the baseline";
  const Stage& stage = StageOf(plan, task);
  if (task.kind == Task::Kind::kVerify && task.evaluation >= 0) {
    const std::string& evaluation =
        plan.file.workflow.evaluation(task.evaluation).name();
    if (const TaskInput* input = task.Find("baseline_predictions")) {
      return absl::StrCat("evaluate by \"", evaluation, "\" against ",
                          plan.tasks[input->task].name);
    }
    return absl::StrCat("evaluate by \"", evaluation, "\"");
  }
  return stage.summary().empty() ? FormOf(stage).summary() : stage.summary();
}

// Returns a text such as "max_accuracy_drop 0.5, min_agreement 0.985".
std::string GatesText(const Plan& plan, const Task& task) {
  const Gates gates = EffectiveGates(plan, task);
  std::vector<std::string> parts;
  const Reflection* const reflection = gates.GetReflection();
  for (int i = 0; i < Gates::descriptor()->field_count(); ++i) {
    const FieldDescriptor* const field = Gates::descriptor()->field(i);
    if (!reflection->HasField(gates, field)) continue;
    parts.push_back(absl::StrCat(
        field->name(), " ", JsonNumber(reflection->GetDouble(gates, field))));
  }
  if (task.lacks_labels && gates.has_max_accuracy_drop()) {
    parts[0] += !LimitsAccuracyDrop(plan, task) && parts.size() > 1
                    ? " (not judged: no labels)"
                    : " (fails: no labels)";
  }
  return absl::StrJoin(parts, ", ");
}

// Returns a text such as "expect accuracy 77.5 %, relative_mse 0.01 of fixed".
std::string AllGatesText(const Plan& plan, const Task& task) {
  std::string text = GatesText(plan, task);
  if (task.kind != Task::Kind::kVerify) return text;
  const Verify* const verify = VerifyOf(StageOf(plan, task));
  if (verify == nullptr) return text;
  if (verify->has_expect()) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", "expect accuracy ",
                    JsonNumber(verify->expect().accuracy()), " %");
  }
  if (verify->has_relative_mse()) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", "relative_mse ",
                    JsonNumber(verify->relative_mse().at_most()), " of ",
                    Printable(verify->relative_mse().stage()));
  }
  return text;
}

// Returns the file's name, or its path if no task makes it.
std::string InputName(const Plan& plan, const TaskInput& input) {
  if (input.task < 0) return Printable(input.path);
  for (const TaskOutput& output : plan.tasks[input.task].outputs) {
    if (output.role == input.output) return Printable(output.file);
  }
  return "";
}

std::string StateText(const TaskOutlooks& outlooks, size_t task) {
  if (task >= outlooks.size()) return "would run";
  if (!outlooks[task].chosen) return "not asked for";
  if (outlooks[task].cached) return "cached";
  return outlooks[task].reason.empty()
             ? "would run"
             : absl::StrCat("would run: ", outlooks[task].reason);
}

void AppendTask(const Plan& plan, size_t index, size_t name_width,
                const TaskOutlooks& outlooks, std::string* out) {
  const Task& task = plan.tasks[index];
  absl::StrAppendFormat(
      out, "%-*s  %s  [%s]\n", name_width, Printable(task.name),
      Printable(TaskSummary(plan, task)), StateText(outlooks, index));
  const std::string indent(name_width + 2, ' ');
  const auto append = [&](std::string_view word, const std::string& text) {
    if (!text.empty()) absl::StrAppend(out, indent, word, text, "\n");
  };
  append("reads  ", absl::StrJoin(task.inputs, ", ",
                                  [&](std::string* text, const auto& input) {
                                    text->append(InputName(plan, input));
                                  }));
  append("writes ", absl::StrJoin(task.outputs, ", ",
                                  [](std::string* text, const auto& output) {
                                    text->append(Printable(output.file));
                                  }));
  append("gates  ", AllGatesText(plan, task));
  for (const std::string& note : task.notes) append("note   ", Printable(note));
}

void AppendOtherStages(const Plan& plan, std::string* out) {
  for (int i = 0; i < plan.file.workflow.stage_size(); ++i) {
    const std::string name = Printable(plan.file.workflow.stage(i).name());
    if (!plan.left_out_by[i].empty()) {
      absl::StrAppend(out, name, ": left out, because variable \"",
                      plan.left_out_by[i], "\" is set\n");
    } else if (!plan.given_graph[i].empty()) {
      absl::StrAppend(out, name, ": not run, its graph is ",
                      Printable(plan.given_graph[i]), "\n");
    }
  }
}

std::string InputAsJson(const Plan& plan, const TaskInput& input) {
  std::vector<std::pair<std::string, std::string>> members = {
      {"role", JsonString(input.role)}};
  if (input.task >= 0) {
    members.emplace_back("task", JsonString(plan.tasks[input.task].name));
    members.emplace_back("output", JsonString(input.output));
  } else {
    members.emplace_back("path", JsonString(input.path));
  }
  return JsonObject(members);
}

std::string TaskAsJson(const Plan& plan, size_t index,
                       const TaskOutlooks& outlooks) {
  const Task& task = plan.tasks[index];
  const auto input_json = [&](const TaskInput& input) {
    return InputAsJson(plan, input);
  };
  const auto output_json = [](const TaskOutput& output) {
    return JsonObject(
        {{"role", JsonString(output.role)}, {"file", JsonString(output.file)}});
  };
  const auto task_name = [&](int other) {
    return JsonString(plan.tasks[other].name);
  };
  std::vector<std::pair<std::string, std::string>> members = {
      {"name", JsonString(task.name)},
      {"summary", JsonString(TaskSummary(plan, task))},
      {"inputs", JsonArrayOf(task.inputs, input_json)},
      {"outputs", JsonArrayOf(task.outputs, output_json)},
      {"after", JsonArrayOf(task.after, task_name)},
      {"notes", JsonArrayOf(task.notes, JsonString)}};
  if (index < outlooks.size()) {
    members.emplace_back("cached", outlooks[index].cached ? "true" : "false");
    members.emplace_back("why", JsonString(outlooks[index].reason));
  }
  return JsonObject(members);
}

// Returns a label's text for Graphviz or Mermaid, to go between quotes.
std::string Label(std::string_view text) {
  return absl::StrReplaceAll(
      Printable(text), {{"\\", "/"}, {"\"", "'"}, {"<", "("}, {">", ")"}});
}

bool IsCached(const TaskOutlooks& outlooks, size_t task) {
  return task < outlooks.size() && outlooks[task].cached;
}

// Returns the files that go from one task to another, or nothing if one only
// waits for the other.
std::string EdgeFiles(const Plan& plan, const Task& task, int source) {
  std::vector<std::string> files;
  for (const TaskInput& input : task.inputs) {
    if (input.task != source) continue;
    const std::string name = InputName(plan, input);
    if (std::find(files.begin(), files.end(), name) == files.end()) {
      files.push_back(name);
    }
  }
  return absl::StrJoin(files, ", ");
}

}  // namespace

std::string PlanAsText(const Plan& plan, const TaskOutlooks& outlooks) {
  const Workflow& workflow = plan.file.workflow;
  std::string text = absl::StrCat(Printable(workflow.name()),
                                  workflow.summary().empty() ? "" : ": ",
                                  Printable(workflow.summary()), "\n\n");
  size_t width = 0;
  for (const Task& task : plan.tasks) {
    width = std::max(width, Printable(task.name).size());
  }
  for (size_t i = 0; i < plan.tasks.size(); ++i) {
    AppendTask(plan, i, width, outlooks, &text);
  }
  AppendOtherStages(plan, &text);
  size_t cached = 0, others = 0;
  for (const TaskOutlook& outlook : outlooks) {
    if (!outlook.chosen) {
      ++others;
    } else if (outlook.cached) {
      ++cached;
    }
  }
  absl::StrAppend(&text, "\n", CountText(plan.tasks.size(), "task"), ", ",
                  cached, " cached, ", plan.tasks.size() - cached - others,
                  " would run\n");
  return text;
}

std::string PlanAsJson(const Plan& plan, const TaskOutlooks& outlooks) {
  std::vector<std::string> tasks, left_out;
  for (size_t i = 0; i < plan.tasks.size(); ++i) {
    tasks.push_back(TaskAsJson(plan, i, outlooks));
  }
  std::vector<std::pair<std::string, std::string>> variables;
  for (const auto& [name, value] : plan.file.variables) {
    variables.emplace_back(name, JsonString(value.value));
  }
  for (int i = 0; i < plan.file.workflow.stage_size(); ++i) {
    if (plan.left_out_by[i].empty()) continue;
    left_out.push_back(plan.file.workflow.stage(i).name());
  }
  return absl::StrCat("{\"workflow\": ", JsonString(plan.file.workflow.name()),
                      ", \"file\": ", JsonString(plan.file.path),
                      ", \"variables\": ", JsonObject(variables),
                      ", \"left_out\": ", JsonArrayOf(left_out, JsonString),
                      ", \"tasks\": [\n", absl::StrJoin(tasks, ",\n"),
                      "\n]}\n");
}

std::string PlanAsDot(const Plan& plan, const TaskOutlooks& outlooks) {
  std::string text =
      absl::StrCat("digraph \"", Label(plan.file.workflow.name()),
                   "\" {\n  rankdir=TB;\n  node [shape=box, style=rounded];\n");
  for (size_t i = 0; i < plan.tasks.size(); ++i) {
    const Task& task = plan.tasks[i];
    absl::StrAppend(&text, "  t", i, " [label=\"", Label(task.name), "\\n",
                    Label(TaskSummary(plan, task)), "\"",
                    task.kind == Task::Kind::kMake ? "" : ", shape=ellipse",
                    IsCached(outlooks, i) ? ", color=gray, fontcolor=gray" : "",
                    "];\n");
    for (const int other : task.after) {
      const std::string files = EdgeFiles(plan, task, other);
      absl::StrAppend(&text, "  t", other, " -> t", i,
                      files.empty()
                          ? " [style=dashed]"
                          : absl::StrCat(" [label=\"", Label(files), "\"]"),
                      ";\n");
    }
  }
  return text + "}\n";
}

std::string PlanAsMermaid(const Plan& plan, const TaskOutlooks& outlooks) {
  std::string text = "flowchart TD\n";
  for (size_t i = 0; i < plan.tasks.size(); ++i) {
    const Task& task = plan.tasks[i];
    const bool makes = task.kind == Task::Kind::kMake;
    absl::StrAppend(&text, "  t", i, makes ? "[\"" : "([\"", Label(task.name),
                    "<br>", Label(TaskSummary(plan, task)),
                    makes ? "\"]" : "\"])", "\n");
    for (const int other : task.after) {
      const std::string files = EdgeFiles(plan, task, other);
      absl::StrAppend(&text, "  t", other,
                      files.empty()
                          ? " -.-> "
                          : absl::StrCat(" -->|\"", Label(files), "\"| "),
                      "t", i, "\n");
    }
    if (IsCached(outlooks, i)) {
      absl::StrAppend(&text, "  style t", i, " stroke-dasharray: 5 5\n");
    }
  }
  return text;
}

}  // namespace requant
