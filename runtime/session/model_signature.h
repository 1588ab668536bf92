#ifndef REQUANT_RUNTIME_SESSION_MODEL_SIGNATURE_H_
#define REQUANT_RUNTIME_SESSION_MODEL_SIGNATURE_H_

// Reads what a model says about its inputs and outputs, without loading it.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/datasets/guess_dataset.h"
#include "runtime/session/job.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace requant {

// Returns the signature that `spec` names, or else the only one, or
// serving_default. Fails if the SavedModel does not have it.
absl::StatusOr<tensorflow::SignatureDef> ReadSignature(const ModelSpec& spec);

// Returns the declaration that GuessDataset makes of files, which may be globs,
// for the first of `models` that tells its inputs: a SavedModel, or a graph
// that kept its names. Prints what was guessed. Fails if no model tells.
absl::StatusOr<DatasetSpec> GuessJobDataset(
    const std::vector<ModelSpec>& models, const std::vector<std::string>& files,
    const GuessOptions& options);

}  // namespace requant

#endif  // REQUANT_RUNTIME_SESSION_MODEL_SIGNATURE_H_
