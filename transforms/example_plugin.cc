// A plugin needs one file and one header. To build this one and load it:
//
//   bazel build //transforms:example_plugin.so
//   transform_graph --plugins=bazel-bin/transforms/example_plugin.so
//       --transforms='prefix_names(prefix="tower/")' ...

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "transforms/transform.h"

namespace {

// Puts a prefix before the names of all nodes except the graph's inputs.
absl::Status PrefixNames(requant::TransformContext& context,
                         tensorflow::GraphDef* graph) {
  const std::string prefix = context.parameters.String("prefix");
  const std::set<std::string> kept(context.inputs.begin(),
                                   context.inputs.end());
  int renamed = 0;
  for (tensorflow::NodeDef& node : *graph->mutable_node()) {
    if (kept.count(node.name()) == 0) {
      node.set_name(absl::StrCat(prefix, node.name()));
      ++renamed;
    }
    for (std::string& input : *node.mutable_input()) {
      const bool control = input[0] == '^';
      const std::string name = control ? input.substr(1) : input;
      if (kept.count(name.substr(0, name.find(':'))) > 0) continue;
      input = absl::StrCat(control ? "^" : "", prefix, name);
    }
  }
  context.notes.push_back(absl::StrCat("puts \"", prefix, "\" before ", renamed,
                                       renamed == 1 ? " name" : " names"));
  return absl::OkStatus();
}

REQUANT_REGISTER_TRANSFORM(
    PrefixNames, {"prefix_names",
                  "Puts a prefix before every name but those of the inputs.",
                  "An example of a plugin.",
                  {{"prefix", requant::ParameterType::kString,
                    "What to put before the names.", "",
                    /*required=*/true}}});

}  // namespace
