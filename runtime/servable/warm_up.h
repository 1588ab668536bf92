#ifndef REQUANT_RUNTIME_SERVABLE_WARM_UP_H_
#define REQUANT_RUNTIME_SERVABLE_WARM_UP_H_

// Requests that a SavedModel carries in assets.extra, with the answers that it
// gave when it was made. Servers run the requests before they take others, and
// `requant check_serving` compares the answers.

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/datasets/batch_source.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/session/model.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {

struct WarmUpRequest {
  std::string model;
  std::string signature;
  // By their keys in the signature.
  std::map<std::string, tensorflow::Tensor> inputs;
  std::map<std::string, tensorflow::Tensor> outputs;
};

// Runs the model on the batch's inputs, which are those of `dataset` in order,
// and returns the request and the answer.
absl::StatusOr<WarmUpRequest> RecordRequest(Model* model,
                                            const std::string& signature,
                                            const DatasetSpec& dataset,
                                            const Batch& batch);

// Writes the requests into the SavedModel in `folder`, in place of any that it
// has.
absl::Status WriteWarmUp(const std::string& folder,
                         const std::vector<WarmUpRequest>& requests);

// Returns the requests of the SavedModel in `folder`; none if it has no such
// file. Fails if the file is damaged.
absl::StatusOr<std::vector<WarmUpRequest>> ReadWarmUp(
    const std::string& folder);

}  // namespace requant

#endif  // REQUANT_RUNTIME_SERVABLE_WARM_UP_H_
