#ifndef REQUANT_RUNTIME_SERVABLE_SERVABLE_H_
#define REQUANT_RUNTIME_SERVABLE_SERVABLE_H_

// The steps by which a SavedModel becomes an eight-bit SavedModel: all its
// signatures are frozen into one graph, each is calibrated on its own records,
// the graph is transformed by the caller and written back, and what was written
// is compared with the original on records that were not calibrated on.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/freeze/freeze.h"
#include "ranges/range_table.h"
#include "runtime/calibration/calibrate.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/evaluation.pb.h"
#include "runtime/session/job.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace requant {

struct FrozenModel {
  // The SavedModel directory, and the tags of its graph.
  std::string directory;
  std::set<std::string> tags;
  // By their keys, without those that are internal to TensorFlow. Several that
  // compute the same are equal.
  std::map<std::string, tensorflow::SignatureDef> signatures;
  FrozenGraph frozen;
};

// Freezes all signatures of the SavedModel that `path` refers to
// (FindSavedModel). Fails if it has none.
absl::StatusOr<FrozenModel> FreezeSignatures(const std::string& path,
                                             const std::set<std::string>& tags);

// Returns the key of the signature that `name` means: itself if the model has
// it; for "" serving_default, or the only one.
absl::StatusOr<std::string> ChooseSignature(const FrozenModel& model,
                                            const std::string& name);

// The records of one signature: the first ones are for calibration, those after
// them for verification.
struct SignatureRecords {
  std::string signature;
  DatasetSpec dataset;
  int64_t calibrated = 0;
  int64_t held_back = 0;
};

// Returns the dataset for signature `key` that takes its inputs from the same
// records as `dataset` does: the inputs that the signature has, and the label
// if it has the predicted output too. Returns nothing if records lack an input,
// if it has none, or if no output of the signature is made of numbers.
std::optional<DatasetSpec> DatasetForSignature(const FrozenModel& model,
                                               const std::string& key,
                                               const DatasetSpec& dataset);

inline constexpr int64_t kMostCompared = 4096;

// Divides the dataset's records: up to `most` are for calibration and up to
// `most` others for verification, but at least a fifth of all is held back.
// With `exact`, the first `most` are for calibration, or all of them if it is
// 0, and up to kMostCompared after them for verification. Reads them for this.
absl::StatusOr<SignatureRecords> DivideRecords(const std::string& signature,
                                               const DatasetSpec& dataset,
                                               int64_t most,
                                               int64_t max_bad_records,
                                               bool exact = false);

// Calibrates what one signature computes of the frozen graph. `settings` has
// the batch size and the like. A signature without layers has no ranges. Of the
// wanted shapes, only those that the signature computes are filled in.
absl::StatusOr<RangeTable> CalibrateSignature(const FrozenModel& model,
                                              const SignatureRecords& records,
                                              const CalibrateJob& settings,
                                              FirstBatchShapes* shapes);

// Runs a signature of the SavedModels `candidate` and `original` on the records
// that were held back.
absl::StatusOr<EvaluateResult> CompareSignature(const FrozenModel& original,
                                                const std::string& candidate,
                                                const SignatureRecords& records,
                                                const CalibrateJob& settings);

// Runs `candidate` and `original` on the records that were held back.
absl::StatusOr<EvaluateResult> CompareModels(const ModelSpec& original,
                                             const ModelSpec& candidate,
                                             const SignatureRecords& records,
                                             const CalibrateJob& settings);

}  // namespace requant

#endif  // REQUANT_RUNTIME_SERVABLE_SERVABLE_H_
