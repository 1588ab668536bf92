// A plugin with a remove_device of its own.

#include "absl/status/status.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "transforms/transform.h"

namespace {

absl::Status RemoveDevice(requant::TransformContext&,
                          tensorflow::GraphDef* graph) {
  for (auto& node : *graph->mutable_node()) node.set_device("/device:CPU:7");
  return absl::OkStatus();
}
REQUANT_REGISTER_TRANSFORM(RemoveDevice,
                           {"remove_device", "Sets a device instead."});

}  // namespace
