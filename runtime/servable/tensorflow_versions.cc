#include "runtime/servable/tensorflow_versions.h"

#include <cstdlib>
#include <string_view>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/text/printable.h"
#include "google/protobuf/text_format.h"
#include "runtime/quantization/quantize.h"
#include "runtime/servable/tensorflow_versions_data.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/versions.pb.h"
#include "transforms/layers/quantized_layer.h"

namespace requant {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;

constexpr char kPortableOp[] = "_QuantizedMatMul";

// What decides which versions run a graph.
struct Need {
  // The index of the first version that does.
  int version = 0;
  // What the version before lacks, for messages.
  std::string what;
};

// The index of the version that brought each op and attribute.
const absl::flat_hash_map<std::string, int>& Arrivals() {
  static const auto* const arrivals = [] {
    auto* made = new absl::flat_hash_map<std::string, int>;
    const TensorFlowVersions& tried = TriedVersions();
    for (int i = 0; i < tried.version_size(); ++i) {
      for (const std::string& op : tried.version(i).new_op()) (*made)[op] = i;
      for (const std::string& attribute : tried.version(i).new_attribute()) {
        (*made)[attribute] = i;
      }
    }
    return made;
  }();
  return *arrivals;
}

void Consider(const std::string& name, std::string_view kind, Need* need) {
  const auto arrival = Arrivals().find(name);
  if (arrival == Arrivals().end() || arrival->second <= need->version) return;
  *need = {arrival->second, absl::StrCat(kind, " ", name)};
}

void ConsiderNode(const NodeDef& node, Need* need) {
  Consider(node.op(), "the operation", need);
  for (const auto& [attribute, value] : node.attr()) {
    Consider(absl::StrCat(node.op(), ".", attribute), "the attribute", need);
  }
}

Need NeedOf(const GraphDef& graph) {
  Need need;
  for (const NodeDef& node : graph.node()) ConsiderNode(node, &need);
  for (const auto& function : graph.library().function()) {
    for (const NodeDef& node : function.node_def()) ConsiderNode(node, &need);
  }
  const int consumer = graph.versions().min_consumer();
  const TensorFlowVersions& tried = TriedVersions();
  while (need.version + 1 < tried.version_size() &&
         tried.version(need.version).graph_def_version() < consumer) {
    ++need.version;
    need.what = absl::StrCat("the graph version ", consumer);
  }
  return need;
}

absl::StatusOr<int> IndexOf(const std::string& version) {
  std::vector<std::string> names;
  for (const TensorFlowVersion& tried : TriedVersions().version()) {
    if (tried.name() == version) return names.size();
    names.push_back(tried.name());
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "TensorFlow \"", Printable(version),
      "\" was not tried; these were: ", absl::StrJoin(names, ", ")));
}

// Returns the wheels with which all models gave the right answers.
std::string RightWheels(const std::string& made_with,
                        const std::vector<std::string>& onednn) {
  std::vector<std::string> wheels;
  for (const TensorFlowVersion& version : TriedVersions().version()) {
    const auto right = [&](const std::string& value) {
      return absl::c_any_of(version.trial(), [&](const Trial& trial) {
        return trial.made_with() == made_with && trial.onednn() == value &&
               trial.right() == trial.models();
      });
    };
    if (absl::c_all_of(onednn, right)) wheels.push_back(version.wheel());
  }
  return absl::StrJoin(wheels, ", ");
}

}  // namespace

const TensorFlowVersions& TriedVersions() {
  static const auto* const versions = [] {
    auto* parsed = new TensorFlowVersions;
    // The table is embedded, so a mistake in it is a defect of this program.
    if (!google::protobuf::TextFormat::ParseFromString(
            std::string(kTensorFlowVersions), parsed)) {
      std::abort();
    }
    return parsed;
  }();
  return *versions;
}

absl::StatusOr<std::string> OpsForTensorFlow(const std::string& version,
                                             const std::string& ops) {
  REQUANT_ASSIGN_OR_RETURN(const int wanted, IndexOf(version));
  const int first = Arrivals().at(kPortableOp);
  if (wanted >= first) return ops.empty() ? "portable" : ops;
  if (ops != "portable") return "legacy";
  return absl::InvalidArgumentError(absl::StrCat(
      "--ops=portable needs TensorFlow ", TriedVersions().version(first).name(),
      " or later, because ", version, " has no ", kPortableOp,
      "; leave --ops out, and the older operations are used"));
}

absl::Status CheckTensorFlow(const std::string& version,
                             const GraphDef& graph) {
  REQUANT_ASSIGN_OR_RETURN(const int wanted, IndexOf(version));
  const Need need = NeedOf(graph);
  if (need.version <= wanted) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("TensorFlow ", version, " cannot run the model: it has ",
                   need.what, ", which came with TensorFlow ",
                   TriedVersions().version(need.version).name()));
}

bool NeedsOneDnn(const GraphDef& graph) {
  return absl::c_any_of(graph.node(), [](const NodeDef& node) {
    return node.op() == kFusedRelu || node.op() == kFusedFloat;
  });
}

std::string RequirementsText(const GraphDef& graph) {
  const std::string& oldest =
      TriedVersions().version(NeedOf(graph).version).name();
  if (QuantizedMatMuls(graph) == 0) {
    return absl::StrCat("TensorFlow ", oldest, " or later has its operations.");
  }
  const std::string text =
      absl::StrCat("TensorFlow ", oldest,
                   " or later has its operations; models of its kind gave the "
                   "right answers in ");
  if (NeedsOneDnn(graph)) {
    return absl::StrCat(text, RightWheels("legacy", {"1"}),
                        ", while oneDNN is turned on: CPUs without VNNI need "
                        "`TF_ENABLE_ONEDNN_OPTS=1` before TensorFlow loads.");
  }
  return absl::StrCat(text, RightWheels("portable", {"", "0", "1"}),
                      ", with oneDNN turned on and off. Nothing needs to be "
                      "set.");
}

}  // namespace requant
