#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "transforms/registry.h"
#include "transforms/transform.h"

namespace requant {
namespace {

using tensorflow::GraphDef;

constexpr ParameterType kInt = ParameterType::kInt;
constexpr ParameterType kFloat = ParameterType::kFloat;
constexpr ParameterType kBool = ParameterType::kBool;

ParameterSpec Optional(std::string name, std::string description,
                       ParameterType type = ParameterType::kString,
                       std::string default_value = "") {
  return {std::move(name), type, std::move(description),
          std::move(default_value)};
}

ParameterSpec AtLeast(double minimum, ParameterSpec parameter) {
  parameter.minimum = minimum;
  return parameter;
}

ParameterSpec Required(std::string name, std::string description) {
  return {std::move(name), ParameterType::kString, std::move(description), "",
          /*required=*/true};
}

ParameterSpec Repeated(std::string name, std::string description,
                       bool required = false) {
  return {std::move(name), ParameterType::kString, std::move(description), "",
          required,        /*repeated=*/true};
}

// Measurements show that fused convolutions use the first record for all.
constexpr char kFirstRecordOnly[] =
    "the fused op's kernel computes only the first record of a batch right; "
    "feed the graph one record at a time";

std::string WarningOfTransposedWeights(const GraphDef& graph) {
  for (const tensorflow::NodeDef& node : graph.node()) {
    const auto transposed = node.attr().find("transpose_b");
    if (node.op() == "MatMul" && transposed != node.attr().end() &&
        transposed->second.b()) {
      return absl::StrCat(
          "\"", node.name(),
          "\" is a MatMul with transpose_b; if a multiplication was folded "
          "into it, its results are wrong now");
    }
  }
  return "";
}

}  // namespace

std::string StockWarning(const std::string& name, const GraphDef& before) {
  if (name == "fold_batch_norms") return WarningOfTransposedWeights(before);
  if (name == "flatten_atrous_conv") {
    return "the new convolution pads as \"SAME\" does, whatever the old one "
           "did; compare the shapes of the outputs";
  }
  const bool fuses = name == "fuse_pad_and_conv" ||
                     name == "fuse_resize_and_conv" ||
                     name == "fuse_resize_pad_and_conv";
  return fuses ? kFirstRecordOnly : "";
}

const std::vector<TransformSpec>& StockSpecs() {
  static const auto* specs = new std::vector<TransformSpec>{
      {"fold_batch_norms",
       "Folds the multiplication after a Conv2D, MatMul or depthwise "
       "convolution into its weights.",
       "Batch normalization leaves a multiplication by constants after each "
       "layer once the graph is frozen; this removes it. Run fold_constants "
       "first so that the factors are constants. Wrong for a MatMul with "
       "transpose_b: it scales the rows instead of the columns.",
       {},
       "fold_constants"},
      {"fold_constants",
       "Computes whatever depends on constants only and stores the results.",
       "Needs --inputs and --outputs: what lies between them and can be "
       "computed now is. Runs parts of the graph.",
       {Optional("clear_output_shapes",
                 "Drop _output_shapes attributes, which may no longer hold.",
                 kBool, "true"),
        Repeated("exclude_op", "An op that is never folded."),
        Repeated("exclude_node", "A node that is never folded."),
        Optional("max_constant_size_in_bytes",
                 "Results larger than this are not stored.", kInt)},
       "none",
       /*needs_outputs=*/true},
      {"fold_old_batch_norms",
       "Folds the fused batch-normalization ops into the convolution before "
       "them.",
       "For graphs with BatchNormWithGlobalNormalization or FusedBatchNorm; "
       "graphs that spell batch normalization out need fold_batch_norms."},
      {"flatten_atrous_conv",
       "Turns SpaceToBatchND + convolution + BatchToSpaceND into one dilated "
       "convolution with zeros between its weights.",
       "For runtimes that lack the batch/space ops. The weights grow. Block "
       "shapes must be int32, and the paddings those of \"SAME\": the new "
       "convolution has them whatever the old one had.",
       {},
       "add_default_attributes"},
      {"fuse_pad_and_conv",
       "Fuses MirrorPad and the Conv2D after it into FusedPadConv2D.",
       "Saves the padded copy of the input. TensorFlow's kernel of the fused "
       "op computes only the first record of a batch right."},
      {"fuse_resize_and_conv",
       "Fuses ResizeBilinear and the Conv2D after it into "
       "FusedResizeAndPadConv2D.",
       "Saves the resized copy of the input. TensorFlow's kernel of the fused "
       "op computes only the first record of a batch right.",
       {},
       "add_default_attributes"},
      {"fuse_resize_pad_and_conv",
       "Fuses ResizeBilinear, MirrorPad and the Conv2D after them into "
       "FusedResizeAndPadConv2D.",
       "Saves the resized and padded copies of the input. TensorFlow's kernel "
       "of the fused op computes only the first record of a batch right.",
       {},
       "add_default_attributes"},
      {"inline_partitionedcall",
       "Replaces PartitionedCall nodes by the body of the function they call.",
       "TensorFlow 2 graphs keep layers in functions; the transforms look only "
       "at the graph itself. Calls within the body need another run, "
       "StatefulPartitionedCall stays, and the node of the call goes: an "
       "output of the graph must not be one."},
      {"merge_duplicate_nodes",
       "Merges nodes with the same op, attributes and inputs, and equal "
       "constants.",
       "Random and stateful ops are left alone."},
      {"freeze_requantization_ranges",
       "TensorFlow's own version of freeze_requantization_ranges.",
       "Reads the whole log at once and leaves nodes that the log never "
       "mentions dynamic without a word.",
       {Required("min_max_log_file", "The log of a calibration run."),
        Optional("min_percentile", "Share of the lowest minima to ignore.",
                 kFloat, "5"),
        Optional("max_percentile", "Share of the highest maxima to ignore.",
                 kFloat, "5")},
       "quantize_nodes, insert_logging and a calibration run"},
      {"insert_logging",
       "TensorFlow's own version of insert_logging.",
       "Writes a graph that does not load when only some outputs of a logged "
       "node are used.",
       {Repeated("op", "Log nodes of this op; all ops without it."),
        Repeated("prefix", "Log nodes whose name starts with this."),
        Optional("show_op", "Start the message with the op.", kBool, "false"),
        Optional("show_name", "Start the message with the node's name.", kBool,
                 "false"),
        Optional("message", "Text before the values."),
        Optional("first_n", "Log this many times; -1 means always.", kInt,
                 "-1"),
        Optional("summarize", "How many values of a tensor to print.", kInt,
                 "1024")}},
      {"quantize_nodes",
       "Replaces float ops by eight-bit ones with ranges computed as the graph "
       "runs.",
       "TensorFlow's quantizer of 2016, without oneDNN's fused ops.",
       {Optional("input_min", "Lowest value of quantized inputs.", kFloat),
        Optional("input_max", "Highest value of quantized inputs.", kFloat),
        Optional("fallback_min",
                 "Fixed minimum of all activations instead of computed ones.",
                 kFloat),
        Optional("fallback_max",
                 "Fixed maximum of all activations instead of computed ones.",
                 kFloat),
        Repeated("ignore_op", "An op that stays float.")},
       "add_default_attributes, quantize_weights"},
      {"quantize_weights",
       "Stores large float constants in eight bits, with a Dequantize after "
       "each.",
       "Shrinks the file to a quarter; the computation stays in float.",
       {Optional("minimum_size", "Constants with fewer elements stay float.",
                 kInt, "1024")}},
      {"round_weights",
       "Rounds large float constants to few different values.",
       "The file stays as large but compresses well.",
       {AtLeast(2, Optional("num_steps", "How many values per constant.", kInt,
                            "256"))}},
      {"sparsify_gather",
       "Replaces gathers from mostly zero tables by hash-table lookups.",
       "Shrinks linear models with sparse weights. Takes tables of shape "
       "[N, 1] after an Identity; the node group_init_node must be run once "
       "before the graph is.",
       {Optional("input_checkpoint",
                 "Checkpoint that holds the tables which are variables."),
        Optional("group_init_node",
                 "Name of the node that initializes the hash tables.",
                 ParameterType::kString, "group_deps")}},
      {"remove_attribute",
       "Removes an attribute from every node, or from nodes of one op.",
       "Removing an attribute that the op requires leaves a graph that does "
       "not load; --verify notices.",
       {Required("attribute_name", "The attribute."),
        Optional("op_name", "Only on nodes of this op.")}},
      {"remove_control_dependencies", "Removes all control inputs.",
       "Side effects that were ordered by them no longer are."},
      {"remove_device", "Clears the device of every node.",
       "Lets a graph load on a machine without the devices it was trained on."},
      {"remove_nodes",
       "Removes nodes of the given ops and connects their readers to what they "
       "read.",
       "Meant for ops that only pass a value on, such as Identity and "
       "CheckNumerics. Inputs and outputs of the graph are kept.",
       {Repeated("op", "The op to remove.", /*required=*/true),
        Optional("max_inputs", "Leave nodes with more inputs than this alone.",
                 kInt, "1")}},
      {"strip_unused_nodes",
       "Removes every node that --outputs do not need, given --inputs.",
       "Nodes named in --inputs become placeholders.",
       {Optional("type", "Type of new placeholders, such as float."),
        Optional("shape",
                 "Shape of new placeholders, such as \"1,224,224,3\"."),
        Repeated("name", "An input to which the next two belong."),
        Repeated("type_for_name", "Type of that input's placeholder."),
        Repeated("shape_for_name", "Shape of that input's placeholder.")},
       "none",
       /*needs_outputs=*/true},
      {"add_default_attributes",
       "Adds attributes that are missing, with the op's default values.",
       "For graphs written by an older TensorFlow."},
      {"backport_concatv2", "Turns ConcatV2 nodes into the old Concat.",
       "For runtimes of TensorFlow before 1.0."},
      {"backport_tensor_array_v3",
       "Turns TensorArray ops of version 3 into version 2.",
       "For old runtimes."},
      {"obfuscate_names",
       "Gives every node but the inputs and outputs a short meaningless name.",
       "Shrinks the file and hides the model's structure from a casual look."},
      {"rename_attribute",
       "Renames an attribute on every node, or on nodes of one op.",
       "For graphs written for another version of an op.",
       {Required("old_attribute_name", "The attribute's name now."),
        Required("new_attribute_name", "Its name afterwards."),
        Optional("op_name", "Only on nodes of this op.")}},
      {"rename_node",
       "Renames one node and everything that reads it.",
       "A name that is taken is refused.",
       {Required("old_node_name", "The node's name now."),
        Required("new_node_name", "Its name afterwards.")}},
      {"rename_op",
       "Changes the op of every node that has it.",
       "Attributes and inputs stay as they are. An op that this TensorFlow "
       "does not have is taken with a warning.",
       {Required("old_op_name", "The op now."),
        Required("new_op_name", "The op afterwards.")}},
      {"set_device",
       "Assigns a device to nodes.",
       "See also remove_device.",
       {Optional("device", "The device, such as \"/device:CPU:0\"."),
        Optional("if_default", "Only to nodes without a device.", kBool,
                 "false")}},
      {"sort_by_execution_order",
       "Orders nodes so that each stands after the nodes it reads.",
       "Some small runtimes execute nodes in the order of the file."},
  };
  return *specs;
}

}  // namespace requant
