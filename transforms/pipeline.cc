#include "transforms/pipeline.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/message_text.h"
#include "base/program/isolation.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
#include "base/text/printable.h"
#include "graph/graph_index.h"
#include "graph/signature_names.h"
#include "graph/verify/verify.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

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

// Returns the first problem and the number of other ones.
std::string Described(const std::vector<GraphProblem>& problems) {
  std::string text = problems.front().message;
  if (problems.size() > 1) {
    absl::StrAppend(&text, " (and ",
                    CountText(problems.size() - 1, "more problem"), ")");
  }
  return text;
}

absl::Status Refused(std::string_view why,
                     const std::vector<GraphProblem>& problems) {
  return absl::InvalidArgumentError(
      absl::StrCat(why, Described(problems),
                   "; nothing was written (--noverify lets it pass)"));
}

// Returns those of `names` whose nodes `graph` lacks.
std::set<std::string> Missing(const std::vector<std::string>& names,
                              const GraphDef& graph) {
  std::set<std::string> missing;
  for (const std::string& name : names) missing.emplace(NodeOf(name));
  if (missing.empty()) return missing;
  for (const NodeDef& node : graph.node()) missing.erase(node.name());
  return missing;
}

// Fails if `graph` lacks one of the nodes that `flag` names.
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

// Returns whether `problem` is an op that one of the step's parameters names,
// such as the new op of rename_op: another TensorFlow may have that op.
bool IsOpAskedFor(const GraphProblem& problem, const Step& step,
                  const GraphDef& graph) {
  if (problem.kind != ProblemKind::kOp) return false;
  const auto node = std::find_if(
      graph.node().begin(), graph.node().end(),
      [&](const NodeDef& node) { return node.name() == problem.node; });
  if (node == graph.node().end()) return false;
  for (const auto& [name, values] : step.parameters.values()) {
    if (std::count(values.begin(), values.end(), node->op()) > 0) return true;
  }
  return false;
}

// Names the transform that breaks the graph. A transform may move or reword a
// problem that the graph already had, so it is blamed only for a kind of
// problem that the graph did not have before.
class PipelineVerifier {
 public:
  explicit PipelineVerifier(const PipelineOptions& options)
      : options_(options) {}

  absl::Status CheckInput(const GraphDef& graph) {
    REQUANT_ASSIGN_OR_RETURN(const std::vector<GraphProblem> problems,
                             Verify(graph));
    std::vector<GraphProblem> structural;
    for (const GraphProblem& problem : problems) {
      if (problem.kind == ProblemKind::kStructure) {
        structural.push_back(problem);
      }
    }
    if (!structural.empty()) {
      return Refused("the input graph is broken: ", structural);
    }
    const std::vector<GraphProblem> others = Remember(problems, graph);
    if (!others.empty()) {
      options_.on_warning(absl::StrCat(
          "TensorFlow cannot run the input graph: ", Described(others)));
    }
    return absl::OkStatus();
  }

  absl::Status CheckAfter(const Step& step, const GraphDef& graph) {
    const std::string& transform = step.transform->spec.name;
    REQUANT_ASSIGN_OR_RETURN(const std::vector<GraphProblem> problems,
                             Verify(graph));
    std::vector<GraphProblem> added;
    for (const GraphProblem& problem : problems) {
      if (WasThere(problem.kind)) continue;
      if (IsOpAskedFor(problem, step, graph)) {
        options_.on_warning(absl::StrCat(transform, ": ", problem.message));
      } else {
        added.push_back(problem);
      }
    }
    Remember(problems, graph);
    if (added.empty()) return absl::OkStatus();
    return Refused(
        absl::StrCat("the transform \"", transform, "\" broke the graph: "),
        added);
  }

  // Refuses a graph that lacked inputs before the transforms and still does.
  absl::Status CheckEnd() const {
    if (missing_inputs_.empty()) return absl::OkStatus();
    return Refused("the graph lacks inputs, as it did before: ",
                   missing_inputs_);
  }

 private:
  static absl::StatusOr<std::vector<GraphProblem>> Verify(
      const GraphDef& graph) {
    return VerifyGraph(graph, {/*shapes=*/true, /*max_problems=*/0});
  }

  // Shapes are checked only in a graph without other problems.
  bool WasThere(ProblemKind kind) const {
    return kinds_.count(kind) > 0 ||
           (kind == ProblemKind::kShape && !kinds_.empty());
  }

  // Returns the problems other than missing inputs. Missing inputs of nodes
  // without any edge that are no outputs are returned too: such fragments do
  // not affect the result, and TensorFlow's own program passes them on.
  std::vector<GraphProblem> Remember(const std::vector<GraphProblem>& problems,
                                     const GraphDef& graph) {
    kinds_.clear();
    missing_inputs_.clear();
    if (problems.empty()) return {};
    std::set<std::string_view> fragments;
    for (const NodeDef& node : graph.node()) {
      if (node.input().empty()) fragments.insert(node.name());
    }
    for (const NodeDef& node : graph.node()) {
      for (const std::string& input : node.input()) {
        fragments.erase(ParseTensorName(input).node);
      }
    }
    for (const std::string& output : options_.outputs) {
      fragments.erase(ParseTensorName(output).node);
    }
    std::vector<GraphProblem> others;
    for (const GraphProblem& problem : problems) {
      kinds_.insert(problem.kind);
      const bool missing = problem.kind == ProblemKind::kMissingInput &&
                           fragments.count(problem.node) == 0;
      (missing ? missing_inputs_ : others).push_back(problem);
    }
    return others;
  }

  const PipelineOptions& options_;
  // The inputs that the last graph lacked.
  std::vector<GraphProblem> missing_inputs_;
  // The kinds of problems that the last graph had.
  std::set<ProblemKind> kinds_;
};

// Returns the message after the transform's name, unless it starts with it.
std::string WithName(const std::string& name, std::string_view message) {
  return absl::StartsWith(message, name) ? std::string(message)
                                         : absl::StrCat(name, ": ", message);
}

// Refuses a call that cannot work without --outputs.
absl::Status CheckOutputs(const TransformSpec& spec,
                          const std::vector<std::string>& outputs,
                          const GraphDef& graph) {
  if (!spec.needs_outputs) return absl::OkStatus();
  if (outputs.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        spec.name,
        " needs the names of the graph's outputs; give them with --outputs"));
  }
  return CheckNames("--outputs", outputs, graph);
}

// Warns of --inputs and --outputs that the graph lacks: most transforms ignore
// such a name, so a misspelling would go unnoticed. Names in a transform's
// parameters are exempt, since the transform may still create those nodes.
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
    names.erase(
        std::remove_if(names.begin(), names.end(),
                       [&](const std::string& name) {
                         return mentioned.count(std::string(NodeOf(name))) > 0;
                       }),
        names.end());
    const absl::Status status = CheckNames(flag, names, graph);
    if (!status.ok()) options.on_warning(status.message());
  };
  warn("--inputs", options.inputs);
  if (!checks_outputs) warn("--outputs", options.outputs);
}

// Warns of outputs that a transform removed; *missing has the outputs missing
// before it and is updated to those missing now.
void WarnOfLostOutputs(const std::string& transform,
                       const PipelineOptions& options, const GraphDef& graph,
                       std::set<std::string>* missing) {
  const std::set<std::string> before =
      std::exchange(*missing, Missing(options.outputs, graph));
  for (const std::string& name : *missing) {
    if (before.count(name) > 0) continue;
    options.on_warning(absl::StrCat(transform, ": the output \"", name,
                                    "\" is no longer in the graph"));
  }
}

// Runs one transform. With ignore_errors=true a failure leaves the graph
// unchanged and becomes a warning.
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
    options.on_note(Printable(WithName(name, note)));
  }
  for (const std::string& warning : context.warnings) {
    options.on_warning(Printable(WithName(name, warning)));
  }
  if (status.ok()) return status;
  if (!ignore_errors) {
    return absl::Status(status.code(), WithName(name, status.message()));
  }
  options.on_warning(
      Printable(absl::StrCat(name, ": ignoring an error: ", status.message())));
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
  // A transform may replace an output by another node of the same name.
  const tensorflow::SignatureDef signature = KeptSignature(*graph);
  std::set<std::string> missing = Missing(options.outputs, *graph);
  PipelineVerifier verifier(options);
  if (options.verify) {
    SetActivity("checking the graph");
    REQUANT_RETURN_IF_ERROR(verifier.CheckInput(*graph));
  }
  for (int i = 0; i < count; ++i) {
    const std::string& name = steps[i].transform->spec.name;
    SetActivity(absl::StrCat("the transform \"", name, "\" (", i + 1, " of ",
                             count, ")"));
    REQUANT_RETURN_IF_ERROR(RunStep(steps[i], options, graph));
    WarnOfLostOutputs(name, options, *graph, &missing);
    REQUANT_RETURN_IF_ERROR(options.on_finish(name, i + 1, *graph));
    if (options.verify) {
      REQUANT_RETURN_IF_ERROR(verifier.CheckAfter(steps[i], *graph));
    }
  }
  KeepSignatureNames(signature, graph);
  return verifier.CheckEnd();
}

}  // namespace requant
