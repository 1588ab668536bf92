#include "runtime/session/job_inputs.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "runtime/datasets/dataset_spec.h"

namespace requant {

std::vector<std::string> SplitList(const std::string& list) {
  return absl::StrSplit(list, ',', absl::SkipEmpty());
}

ModelSpec MakeModelSpec(const std::string& path, const std::string& tags,
                        const std::string& signature) {
  ModelSpec model;
  model.set_path(path);
  for (const std::string& tag : SplitList(tags)) model.add_tags(tag);
  model.set_signature(signature);
  return model;
}

absl::StatusOr<DatasetSpec> ReadJobDataset(const std::string& path,
                                           const std::string& files,
                                           const std::string& output,
                                           const std::string& use) {
  REQUANT_ASSIGN_OR_RETURN(DatasetSpec dataset,
                           ReadDatasetSpec(path, SplitList(files)));
  if (!output.empty()) dataset.mutable_prediction()->set_tensor(output);
  if (dataset.prediction().tensor().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " names no prediction to ", use,
                     ": add prediction { tensor: \"...\" } or give --output"));
  }
  return dataset;
}

}  // namespace requant
