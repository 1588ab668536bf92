#ifndef REQUANT_RUNTIME_DATASETS_TESTING_TESTING_H_
#define REQUANT_RUNTIME_DATASETS_TESTING_TESTING_H_

// Helpers for tests: those of base/testing, and files of records. Test files
// need not include what this header includes.

#include <random>

#include "base/testing/fuzz_rounds.h"
#include "base/testing/gzip.h"
#include "base/testing/testing.h"
#include "runtime/datasets/batch_source.h"

namespace requant {

// Declares a float "n" and a string "s".
inline constexpr char kNumberAndText[] = R"(
    input { feature: "n" placeholder: "0" dtype: "float" }
    input { feature: "s" placeholder: "1" dtype: "string" })";

using Strings = std::vector<std::string>;

// Writes a file named `name` into the test's own folder; returns its path.
std::string WriteTestFile(std::string_view name, std::string_view contents);

// Returns a serialized tf.train.Example from its text form, such as
//   features { feature { key: "x" value { float_list { value: 1 } } } }
std::string ExampleBytes(const std::string& text);

// Returns an Example whose feature "x" is the float `x` and "label" the int64
// `label`.
std::string SmallExample(float x, int label);

// Returns `data` as a record of a TFRecord file.
std::string RecordBytes(std::string_view data);

// Returns a declaration from its text form.
DatasetSpec SpecFromText(const std::string& text);

// What a source returns until it ends or fails. Messages omit the test's
// folder.
struct ReadResult {
  std::vector<Batch> batches;
  absl::Status status;
  int64_t bad_records = 0;
  int64_t lost_rests = 0;
  Strings bad_messages;

  // Returns the values of input `i` in all batches, as text.
  Strings Values(int i) const;
};
ReadResult ReadAll(const DatasetSpec& spec, BatchOptions options = {});

// Reads files with these contents, called "0.SOURCE" and so on, with the source
// of that name, skipping bad records. `fields` are the source's other fields.
ReadResult ReadContents(const std::string& source, const Strings& contents,
                        const std::string& inputs = kNumberAndText,
                        const std::string& fields = "");

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_TESTING_TESTING_H_
