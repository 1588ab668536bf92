// Implements quantize_graph with the flags that it has in the published recipe.

#include <gflags/gflags.h>

#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/program/flags.h"
#include "base/program/isolation.h"
#include "base/status_macros.h"
#include "base/terminal/terminal_text.h"
#include "base/text/printable.h"
#include "graph/graph_io.h"
#include "transforms/eightbit/eightbit_nodes.h"
#include "transforms/layers/quantized_weights.h"
#include "transforms/pipeline_parser.h"
#include "transforms/recipe_program.h"
#include "transforms/transform.h"

DEFINE_string(input, "",
              "The frozen float graph to read: a binary or text GraphDef.");
DEFINE_string(output, "", "Where to write the eight-bit graph.");
DEFINE_string(output_node_names, "",
              "The graph's outputs, separated by commas; what they do not need "
              "is left out.");
DEFINE_string(mode, "eightbit", "How to quantize: eightbit, the only mode.");
DEFINE_int32(bitdepth, 8, "Bits of a quantized value: 8, the only depth.");
DEFINE_bool(output_binary, true,
            "Write a binary graph; --nooutput_binary writes text.");
DEFINE_bool(print_nodes, false,
            "Print the nodes of the input graph that its outputs need, each as "
            "op:name.");
DEFINE_string(intel_cpu_eightbitize, "True",
              "True: use oneDNN's kernels, the only ones there are.");
DEFINE_string(model_name, "",
              "Accepted for the sake of old scripts; layers are found by what "
              "they compute, whatever the model.");
DEFINE_string(excluded_ops, "",
              "Types of nodes that stay float, separated by commas.");
DEFINE_string(excluded_nodes, "",
              "Names of nodes that stay float, separated by commas.");
DEFINE_string(per_channel, "False",
              "One range for each column of the weights; the kernels do not "
              "have it, so True is an error.");
DEFINE_string(target, "any",
              "The CPU that the model is for: any (safe everywhere), avx2, "
              "avx512, vnni, avx_vnni or amx; \"requant doctor\" says what "
              "this machine is.");
DEFINE_bool(input_binary, true,
            "Accepted for the sake of old scripts, as are --test_input_dims "
            "and --logtostderr: the input's content tells whether it is "
            "binary, no graph is run, and messages go to stderr anyway.");
DEFINE_string(test_input_dims, "", "See --input_binary.");
DEFINE_bool(logtostderr, true, "See --input_binary.");
DEFINE_bool(strip_redundant_quantization, true,
            "Let one layer's eight-bit output be the next one's input: always "
            "so, turning it off is an error.");
DEFINE_double(timeout, 3600, "Give up after this many seconds; 0 means never.");

namespace requant {
namespace {

ProgramHelp Help() {
  ProgramHelp help = {
      ProgramName(),
      "Turns the MatMul layers of a frozen float graph into eight-bit ones, "
      "whose ranges are computed in every run. Freeze them with requant "
      "transform: freeze_requantization_ranges, freeze_min, freeze_max.",
      "$0 --input=optimized_wide_deep_fp32_graph.pb "
      "--output=int8_dynamic_range_wide_deep_graph.pb "
      "--output_node_names=import/head/predictions/probabilities "
      "--mode=eightbit --intel_cpu_eightbitize=True",
      {__FILE__},
      ""};
  help.aliases = {{"out", "output"}};
  return help;
}

std::optional<std::string> TruthProblem(const std::string& flag,
                                        const std::string& value) {
  if (ParseTruth(value).has_value()) return std::nullopt;
  return absl::StrCat("--", flag, " takes True or False, not \"", value, "\"");
}

// Returns the error for a mode other than eightbit.
std::string OtherMode() {
  static const auto* const transforms = new std::map<std::string, std::string>{
      {"weights", "quantize_weights"},
      {"weights_rounded", "round_weights"},
      {"round", "round_weights"},
      {"quantize", "add_default_attributes quantize_weights quantize_nodes"}};
  const auto found = transforms->find(FLAGS_mode);
  const std::string refusal = absl::StrCat(
      "--mode=", FLAGS_mode, " is not supported, only --mode=eightbit");
  if (found == transforms->end()) return refusal;
  return absl::StrCat(refusal, "; this does it: requant transform --in_graph=",
                      ShellQuoted(FLAGS_input),
                      " --out_graph=", ShellQuoted(FLAGS_output),
                      " --outputs=", ShellQuoted(FLAGS_output_node_names),
                      " --transforms=", ShellQuoted(found->second));
}

std::optional<std::string> UsageProblem() {
  if (FLAGS_input.empty()) return "--input is missing";
  if (FLAGS_output.empty()) return "--output is missing";
  if (ParseNameList(FLAGS_output_node_names).empty()) {
    return "--output_node_names is missing";
  }
  if (FLAGS_mode != "eightbit") return OtherMode();
  if (FLAGS_bitdepth != 8) {
    return absl::StrCat("--bitdepth=", FLAGS_bitdepth,
                        " is not supported: the kernels have 8 bits");
  }
  if (!FLAGS_strip_redundant_quantization) {
    return "--strip_redundant_quantization=False is not supported: no "
           "redundant quantization is ever made";
  }
  if (auto problem =
          TruthProblem("intel_cpu_eightbitize", FLAGS_intel_cpu_eightbitize)) {
    return problem;
  }
  if (!*ParseTruth(FLAGS_intel_cpu_eightbitize)) {
    return "--intel_cpu_eightbitize=False is not supported: TensorFlow has "
           "eight-bit kernels of oneDNN only";
  }
  if (auto problem = TruthProblem("per_channel", FLAGS_per_channel)) {
    return problem;
  }
  const auto rule = WeightRuleOf(FLAGS_target);
  if (!rule.ok()) return std::string(rule.status().message());
  return std::nullopt;
}

absl::Status Quantize(TransformContext& context, tensorflow::GraphDef* graph) {
  if (FLAGS_print_nodes) {
    for (const tensorflow::NodeDef& node : graph->node()) {
      std::printf("%s\n",
                  PrintableLine(absl::StrCat(node.op(), ":", node.name()), true)
                      .c_str());
    }
  }
  SetActivity("quantizing the graph");
  REQUANT_ASSIGN_OR_RETURN(const int quantized,
                           QuantizeEightbit(context, graph));
  if (quantized == 0) {
    const std::string why =
        absl::StrJoin(std::exchange(context.warnings, {}), "; ");
    return absl::FailedPreconditionError(
        absl::StrCat(FLAGS_input, ": ", why, "; nothing was written"));
  }
  if (!FLAGS_model_name.empty()) {
    context.notes.push_back(absl::StrCat("--model_name=", FLAGS_model_name,
                                         " makes no difference"));
  }
  return absl::OkStatus();
}

RecipeProgram Program() {
  return {FLAGS_input,
          FLAGS_output,
          FLAGS_output_binary ? GraphFormat::kBinary : GraphFormat::kText,
          ParseNameList(FLAGS_output_node_names),
          "--output_node_names",
          FLAGS_timeout,
          Parameters({{"target", {FLAGS_target}},
                      {"excluded_ops", ParseNameList(FLAGS_excluded_ops)},
                      {"excluded_nodes", ParseNameList(FLAGS_excluded_nodes)},
                      {"per_channel",
                       {*ParseTruth(FLAGS_per_channel) ? "true" : "false"}}}),
          Quantize};
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  return requant::RecipeMain(argc, argv, requant::Help(), requant::UsageProblem,
                             requant::Program);
}
