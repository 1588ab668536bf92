#ifndef REQUANT_RUNTIME_SESSION_JOB_INPUTS_H_
#define REQUANT_RUNTIME_SESSION_JOB_INPUTS_H_

// From what people type to what a job of a worker takes: the same for every
// program that runs graphs on records.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/session/worker.pb.h"

namespace requant {

// The parts between commas, without empty ones.
std::vector<std::string> SplitList(const std::string& list);

// `tags` are separated by commas.
ModelSpec MakeModelSpec(const std::string& path, const std::string& tags,
                        const std::string& signature);

// Reads a declaration. `files`, separated by commas, replace its files unless
// empty, and `output` its prediction's tensor. One that then names no
// prediction is refused; `use` says what it is needed for, such as "score".
absl::StatusOr<DatasetSpec> ReadJobDataset(const std::string& path,
                                           const std::string& files,
                                           const std::string& output,
                                           const std::string& use);

}  // namespace requant

#endif  // REQUANT_RUNTIME_SESSION_JOB_INPUTS_H_
