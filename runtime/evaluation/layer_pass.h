#ifndef REQUANT_RUNTIME_EVALUATION_LAYER_PASS_H_
#define REQUANT_RUNTIME_EVALUATION_LAYER_PASS_H_

#include "absl/status/status.h"
#include "runtime/evaluation.pb.h"
#include "runtime/evaluation/evaluate.h"
#include "runtime/session/model.h"
#include "transforms/layers/float_layer.h"

namespace requant {

// Compares the layers of `baseline` with those of `model` on the first
// options.layer_records records, and puts the figures into `result`: a run of
// its own, since fetching what is inside a graph makes it slower.
absl::Status CompareLayers(const EvaluateOptions& options,
                           const LayerPairs& layers, Model* model,
                           Model* baseline, EvaluateResult* result);

}  // namespace requant

#endif  // REQUANT_RUNTIME_EVALUATION_LAYER_PASS_H_
