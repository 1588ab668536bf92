#ifndef REQUANT_RUNTIME_BENCHMARK_BENCHMARK_INPUTS_H_
#define REQUANT_RUNTIME_BENCHMARK_BENCHMARK_INPUTS_H_

// The batches that graphs are measured on, which are read from a dataset or
// generated to match the inputs of a SavedModel's signature.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/datasets/batch_source.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/session/job.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace requant {

// Reads the first batches of a dataset into memory, so that measurements do not
// include reading: at most `max_batches`, and no more than fit in `max_bytes`,
// but at least one. Each has `options.batch_size` records, unless the whole
// dataset has fewer. Fails if the dataset has no records. Errors call the
// dataset `name`.
absl::StatusOr<std::vector<Batch>> PreloadBatches(const DatasetSpec& dataset,
                                                  const std::string& name,
                                                  BatchOptions options,
                                                  int64_t max_batches,
                                                  int64_t max_bytes);

// A token array holds texts as numbers: it is a NumPy file (.npy) of integers
// with two dimensions and one text per row.
//
// Returns `path` itself if it is a file. In a folder, returns input_ids.npy, or
// else the first token array by name, or "" if there is none. Fails if there is
// nothing at `path`.
absl::StatusOr<std::string> FindTokenArray(const std::string& path);

// A batch of generated inputs.
struct SyntheticBatch {
  // Feeds the inputs under the signature's names, and names the output.
  DatasetSpec dataset;
  Batch batch;
  // Descriptions for users, one for each generated input.
  std::vector<std::string> notes;
  // Describes the input that a token array feeds; "" if there is none.
  std::string token_note;
  // The values used for the job's fields of these names: how many numbers there
  // are, and the size of open dimensions.
  int64_t ids = 0;
  int64_t length = 0;
};

// Fills the inputs of `signature` for `batch_size` records, always with the
// same values: random floating-point numbers from -1 to 1, integers and truth
// values, and ones for an input whose name ends in "mask". The first dimension
// counts records; others that the signature leaves open get `synthetic.length`.
// With a token array, one input gets at most `batch_size` of its rows instead,
// and open dimensions get their length. Fails, naming `path`, if inputs of a
// type or shape cannot be generated, the signature does not take the batch
// size, none of several outputs is chosen, or the tokens have no input or are
// beyond the vocabulary.
absl::StatusOr<SyntheticBatch> MakeSyntheticBatch(
    const tensorflow::SignatureDef& signature, const std::string& path,
    const SyntheticInputs& synthetic, int64_t batch_size);

}  // namespace requant

#endif  // REQUANT_RUNTIME_BENCHMARK_BENCHMARK_INPUTS_H_
