#ifndef REQUANT_RUNTIME_BENCHMARK_BENCHMARK_INPUTS_H_
#define REQUANT_RUNTIME_BENCHMARK_BENCHMARK_INPUTS_H_

// The batches that graphs are measured on: of a dataset, or made up by what a
// SavedModel's signature says of its inputs.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/datasets/batch_source.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/session/job.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace requant {

// Reads the first batches of a dataset into memory, so that reading them is no
// part of what is measured: `max_batches` of them, or as many as fit in
// `max_bytes`, but at least one. All have `options.batch_size` records, unless
// the whole dataset has fewer; a dataset without records is an error. Errors
// name the dataset as `name`.
absl::StatusOr<std::vector<Batch>> PreloadBatches(const DatasetSpec& dataset,
                                                  const std::string& name,
                                                  BatchOptions options,
                                                  int64_t max_batches,
                                                  int64_t max_bytes);

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

#endif  // REQUANT_RUNTIME_BENCHMARK_BENCHMARK_INPUTS_H_
