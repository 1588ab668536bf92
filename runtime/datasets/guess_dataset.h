#ifndef REQUANT_RUNTIME_DATASETS_GUESS_DATASET_H_
#define REQUANT_RUNTIME_DATASETS_GUESS_DATASET_H_

// Makes a declaration for files whose features, columns or arrays are named as
// a signature's inputs.

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/datasets/dataset.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace requant {

struct GuessOptions {
  // The prediction's tensor; if empty, it is the signature's only output, or
  // the only one that looks like a prediction.
  std::string output = "";
  // The flag that sets `output`, for messages.
  std::string output_flag = "--output";
  // Whether it is an error if none of several outputs is the prediction.
  bool needs_prediction = true;
  // Whether what only a person can tell becomes a gap, not an error. There need
  // not be any files then: features are assumed to be named as the inputs.
  bool leaves_gaps = false;
  // The outputs that are sums (graph/output_op.h) if that is known: one value
  // per record that is a sum is a number, not a probability.
  std::set<std::string> sums = {};
};

// A sentence on a field of DatasetSpec.
struct GuessNote {
  // All fields of the oneof `source` have this number.
  static constexpr int kSource = DatasetSpec::kTfrecordFieldNumber;
  int field;
  std::string text;
};

struct GuessedDataset {
  DatasetSpec spec;
  // What was guessed.
  std::vector<GuessNote> notes;
  // What is left to fill in: texts that are kFillIn
  // (runtime/datasets/dataset_spec.h), and dimensions that are -1.
  std::vector<GuessNote> gaps;
};

// Returns a declaration of `files`, which are all CSV, JSON lines, .npz
// archives or TFRecord files of tf.train.Example. Inputs have the signature's
// types and shapes; dimensions that it leaves open, but for the first, are
// those of the first records. The only other feature that is named like a label
// is the label; there may be none. Fails if an input has no feature of its
// name. Names are such that the declaration also fits graphs that are made of
// the model.
absl::StatusOr<GuessedDataset> GuessDataset(
    const tensorflow::SignatureDef& signature,
    const std::vector<std::string>& files, const GuessOptions& options = {});

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_GUESS_DATASET_H_
