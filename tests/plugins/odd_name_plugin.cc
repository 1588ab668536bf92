// A plugin whose transform nobody can call.

#include "absl/status/status.h"
#include "transforms/transform.h"

namespace {

absl::Status DoNothing(requant::TransformContext&, tensorflow::GraphDef*) {
  return absl::OkStatus();
}
REQUANT_REGISTER_TRANSFORM(DoNothing, {"do nothing", "Does nothing."});

}  // namespace
