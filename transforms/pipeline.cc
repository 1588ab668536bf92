#include "transforms/pipeline.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/nearest_name.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "graph/verify.h"

namespace requant {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;

struct Step {
  const RegisteredTransform* transform;
  Parameters parameters;
};

absl::StatusOr<std::vector<Step>> ResolveCalls(
    const std::vector<TransformCall>& calls,
    const TransformRegistry& registry) {
  std::vector<Step> steps;
  for (const TransformCall& call : calls) {
    Step step;
    REQUANT_ASSIGN_OR_RETURN(step.transform, registry.Find(call.name));
    REQUANT_ASSIGN_OR_RETURN(step.parameters,
                             ResolveParameters(step.transform->spec, call));
    steps.push_back(std::move(step));
  }
  return steps;
}

std::string Described(const std::vector<GraphProblem>& problems) {
  std::string text = problems.front().message;
  if (problems.size() > 1) {
    absl::StrAppend(&text, " (and ", problems.size() - 1, " more problem",
                    problems.size() == 2 ? "" : "s", ")");
  }
  return text;
}

// "a" of "a:1".
std::string NodeOf(const std::string& output) {
  return output.substr(0, output.find(':'));
}

// Those of `names` whose nodes `graph` lacks.
std::set<std::string> Missing(const std::vector<std::string>& names,
                              const GraphDef& graph) {
  std::set<std::string> missing;
  for (const std::string& name : names) missing.insert(NodeOf(name));
  if (missing.empty()) return missing;
  for (const NodeDef& node : graph.node()) missing.erase(node.name());
  return missing;
}

// An error when `graph` lacks one of the nodes that `flag` names.
absl::Status CheckNames(std::string_view flag,
                        const std::vector<std::string>& names,
                        const GraphDef& graph) {
  constexpr size_t kMostNamed = 5;
  const std::set<std::string> missing = Missing(names, graph);
  if (missing.empty()) return absl::OkStatus();
  std::vector<std::string> known;
  for (const NodeDef& node : graph.node()) known.push_back(node.name());
  std::vector<std::string> told;
  for (const std::string& name : missing) {
    if (told.size() == kMostNamed) break;
    told.push_back(absl::StrCat("\"", name, "\"", DidYouMean(name, known)));
  }
  std::string text = absl::StrCat(flag, " names ", absl::StrJoin(told, ", "));
  if (missing.size() > told.size()) {
    absl::StrAppend(&text, " and ", missing.size() - told.size(), " more");
  }
  return absl::NotFoundError(absl::StrCat(text, ", which ",
                                          missing.size() == 1 ? "is" : "are",
                                          " not in the graph"));
}

// A problem's message without the names in it, which transforms change.
std::string WithoutNames(std::string_view message) {
  std::string text;
  bool in_name = false;
  for (char c : message) {
    if (c == '"') in_name = !in_name;
    if (!in_name) text.push_back(c);
  }
  return text;
}

// Remembers what was wrong with the graph from the start, and names the
// transform that adds to it.
class PipelineVerifier {
 public:
  explicit PipelineVerifier(const PipelineOptions& options)
      : options_(options) {}

  absl::Status CheckInput(const GraphDef& graph) {
    REQUANT_ASSIGN_OR_RETURN(
        std::vector<GraphProblem> problems,
        VerifyGraph(graph, {/*shapes=*/true, /*max_problems=*/0}));
    std::vector<GraphProblem> structural;
    for (const GraphProblem& problem : problems) {
      known_.insert(problem.message);
      ++known_kinds_[WithoutNames(problem.message)];
      if (problem.kind == ProblemKind::kStructure) {
        structural.push_back(problem);
      }
    }
    if (!structural.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the input graph is broken: ", Described(structural)));
    }
    if (!problems.empty() && options_.on_warning) {
      options_.on_warning(absl::StrCat(
          "TensorFlow cannot run the input graph: ", Described(problems)));
    }
    return absl::OkStatus();
  }

  absl::Status CheckAfter(const std::string& transform,
                          const GraphDef& graph) const {
    REQUANT_ASSIGN_OR_RETURN(
        std::vector<GraphProblem> problems,
        VerifyGraph(graph, {/*shapes=*/true, /*max_problems=*/0}));
    problems = New(std::move(problems));
    if (problems.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the transform \"", transform,
                     "\" broke the graph: ", Described(problems),
                     "; nothing was written (--noverify lets it pass)"));
  }

 private:
  // Those that the graph did not have from the start. Under new names, as many
  // as there were of a kind count as the old ones.
  std::vector<GraphProblem> New(std::vector<GraphProblem> problems) const {
    std::map<std::string, int> kinds;
    for (const GraphProblem& problem : problems) {
      ++kinds[WithoutNames(problem.message)];
    }
    const auto is_old = [&](const GraphProblem& problem) {
      if (known_.count(problem.message) > 0) return true;
      const std::string kind = WithoutNames(problem.message);
      const auto known = known_kinds_.find(kind);
      return known != known_kinds_.end() && kinds[kind] <= known->second;
    };
    problems.erase(std::remove_if(problems.begin(), problems.end(), is_old),
                   problems.end());
    return problems;
  }

  const PipelineOptions& options_;
  std::set<std::string> known_;
  std::map<std::string, int> known_kinds_;
};

// The message behind the transform's name, unless it starts with it anyway.
std::string WithName(const std::string& name, std::string_view message) {
  return absl::StartsWith(message, name) ? std::string(message)
                                         : absl::StrCat(name, ": ", message);
}

// Refuses a call that cannot work out for want of --outputs.
absl::Status CheckOutputs(const TransformSpec& spec,
                          const std::vector<std::string>& outputs,
                          const GraphDef& graph) {
  if (!spec.needs_outputs) return absl::OkStatus();
  if (outputs.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(spec.name,
                     " needs the names of the graph's outputs; "
                     "give them with --outputs"));
  }
  return CheckNames("--outputs", outputs, graph);
}

// Warns of --inputs and --outputs that the graph lacks: most transforms take no
// notice of such a name, and a misspelt one then has no effect. Names that a
// transform's parameters mention may yet come to be.
void WarnOfMissingNames(const std::vector<Step>& steps,
                        const PipelineOptions& options, const GraphDef& graph) {
  std::set<std::string> mentioned;
  bool checks_outputs = false;
  for (const Step& step : steps) {
    checks_outputs |= step.transform->spec.needs_outputs;
    for (const auto& [name, values] : step.parameters.values()) {
      mentioned.insert(values.begin(), values.end());
    }
  }
  const auto warn = [&](std::string_view flag, std::vector<std::string> names) {
    names.erase(std::remove_if(names.begin(), names.end(),
                               [&](const std::string& name) {
                                 return mentioned.count(NodeOf(name)) > 0;
                               }),
                names.end());
    const absl::Status status = CheckNames(flag, names, graph);
    if (!status.ok() && options.on_warning) {
      options.on_warning(status.message());
    }
  };
  warn("--inputs", options.inputs);
  if (!checks_outputs) warn("--outputs", options.outputs);
}

// Warns when a transform took away an output that was there before it.
class OutputWatch {
 public:
  OutputWatch(const PipelineOptions& options, const GraphDef& graph)
      : options_(options), missing_(Missing(options.outputs, graph)) {}

  void After(const std::string& transform, const GraphDef& graph) {
    std::set<std::string> missing = Missing(options_.outputs, graph);
    for (const std::string& name : missing) {
      if (missing_.count(name) > 0 || !options_.on_warning) continue;
      options_.on_warning(absl::StrCat(transform, ": the output \"", name,
                                       "\" is no longer in the graph"));
    }
    missing_ = std::move(missing);
  }

 private:
  const PipelineOptions& options_;
  std::set<std::string> missing_;
};

// Runs one transform. With ignore_errors=true a failure leaves the graph as it
// was and becomes a warning.
absl::Status RunStep(const Step& step, const PipelineOptions& options,
                     GraphDef* graph) {
  const std::string& name = step.transform->spec.name;
  const bool ignore_errors = step.parameters.Bool("ignore_errors");
  GraphDef before;
  if (ignore_errors) before = *graph;
  TransformContext context;
  context.inputs = options.inputs;
  context.outputs = options.outputs;
  context.parameters = step.parameters;
  absl::Status status =
      CheckOutputs(step.transform->spec, options.outputs, *graph);
  if (status.ok()) status = step.transform->run(context, graph);
  for (const std::string& note : context.notes) {
    if (options.on_note) options.on_note(Printable(WithName(name, note)));
  }
  for (const std::string& warning : context.warnings) {
    if (options.on_warning) {
      options.on_warning(Printable(WithName(name, warning)));
    }
  }
  if (status.ok()) return status;
  if (!ignore_errors) {
    return absl::Status(status.code(), WithName(name, status.message()));
  }
  if (options.on_warning) {
    options.on_warning(Printable(
        absl::StrCat(name, ": ignoring an error: ", status.message())));
  }
  *graph = std::move(before);
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckCalls(const std::vector<TransformCall>& calls,
                        const TransformRegistry& registry) {
  return ResolveCalls(calls, registry).status();
}

absl::Status RunPipeline(const std::vector<TransformCall>& calls,
                         const TransformRegistry& registry,
                         const PipelineOptions& options, GraphDef* graph) {
  REQUANT_ASSIGN_OR_RETURN(const std::vector<Step> steps,
                           ResolveCalls(calls, registry));
  int count = steps.size();
  if (options.stop_after >= 0) count = std::min(count, options.stop_after);
  WarnOfMissingNames(steps, options, *graph);
  OutputWatch output_watch(options, *graph);
  PipelineVerifier verifier(options);
  if (options.verify) {
    if (options.on_start) options.on_start("", 0, count);
    REQUANT_RETURN_IF_ERROR(verifier.CheckInput(*graph));
  }
  for (int i = 0; i < count; ++i) {
    const std::string& name = steps[i].transform->spec.name;
    if (options.on_start) options.on_start(name, i + 1, count);
    REQUANT_RETURN_IF_ERROR(RunStep(steps[i], options, graph));
    output_watch.After(name, *graph);
    if (options.on_finish) {
      REQUANT_RETURN_IF_ERROR(options.on_finish(name, i + 1, *graph));
    }
    if (options.verify) {
      REQUANT_RETURN_IF_ERROR(verifier.CheckAfter(name, *graph));
    }
  }
  return absl::OkStatus();
}

}  // namespace requant
