#ifndef REQUANT_RUNTIME_BENCHMARK_SIGNATURE_INPUTS_H_
#define REQUANT_RUNTIME_BENCHMARK_SIGNATURE_INPUTS_H_

// What a SavedModel's signature says of its inputs.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/datasets/batch_source.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/session/job.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace requant {

// Returns the signature that `spec` names, serving_default unless it names one.
// Fails when the SavedModel does not have it.
absl::StatusOr<tensorflow::SignatureDef> ReadSignature(const ModelSpec& spec);

// A token array has texts as numbers: it is a NumPy file (.npy) of whole
// numbers with two dimensions, one text per row.
//
// Returns the file that `path` means: itself, or, for a folder, its
// input_ids.npy or else the first by name of the files in it that are token
// arrays; "" when a folder has none. Fails when there is nothing at `path`.
absl::StatusOr<std::string> FindTokenArray(const std::string& path);

// Inputs that were made up.
struct SyntheticBatch {
  // Feeds them by the signature's names, and names the output.
  DatasetSpec dataset;
  Batch batch;
  // For people, one for each input that was made up.
  std::vector<std::string> notes;
  // A note on the input that a token array feeds; "": there is no such input.
  std::string token_note;
  // What was settled of the job's: how many numbers there are, and the size of
  // open dimensions.
  int64_t ids = 0;
  int64_t length = 0;
};

// Fills the inputs of `signature` for `batch_size` records, always with the
// same values: floating-point numbers from -1 to 1, whole numbers and truth
// values at random, and ones for an input whose name ends in "mask". The first
// dimension counts records; others that the signature leaves open get
// `synthetic.length`. With a token array one input gets its rows instead, at
// most `batch_size`, and open dimensions get their length. Fails, naming
// `path`, for types and shapes that cannot be made up, a batch size that the
// signature does not take, several outputs of which none is chosen, no input
// for the tokens, and tokens beyond the vocabulary.
absl::StatusOr<SyntheticBatch> MakeSyntheticBatch(
    const tensorflow::SignatureDef& signature, const std::string& path,
    const SyntheticInputs& synthetic, int64_t batch_size);

}  // namespace requant

#endif  // REQUANT_RUNTIME_BENCHMARK_SIGNATURE_INPUTS_H_
