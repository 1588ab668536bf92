#ifndef REQUANT_RUNTIME_DATASETS_CRITEO_CRITEO_WRITER_H_
#define REQUANT_RUNTIME_DATASETS_CRITEO_CRITEO_WRITER_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "runtime/datasets/criteo/criteo_format.h"

namespace requant {

enum class CriteoFormat {
  // The challenge's text: label, I1 ... I13, C1 ... C26, separated by commas;
  // nothing stands for a missing value.
  kCsv,
  // tf.train.Example records with features `label` (int64), I1 ... I13 (float)
  // and C1 ... C26 (bytes), missing values filled.
  kTfRecord,
  // The model zoo's tf.train.Example records: `label` (int64), `numeric_1` (13
  // normalised floats), `string_1` (52 int64: 26 pairs of position and bucket).
  kPreprocessed,
};

// "csv", "tfrecord" or "preprocessed".
std::optional<CriteoFormat> CriteoFormatNamed(std::string_view name);

// Writes records to a descriptor. The same records give the same bytes.
class CriteoWriter {
 public:
  // `ranges` and `buckets` are used by kPreprocessed alone.
  CriteoWriter(int fd, CriteoFormat format, const NumericRanges& ranges = {},
               int64_t buckets = kDefaultBuckets);

  absl::Status Write(const CriteoRecord& record);
  // Must be called at the end: writes what is still held.
  absl::Status Flush();

 private:
  void AppendCsv(const CriteoRecord& record);
  void AppendRaw(const CriteoRecord& record);
  void AppendPreprocessed(const CriteoRecord& record);

  const int fd_;
  const CriteoFormat format_;
  const NumericRanges ranges_;
  const int64_t buckets_;
  const std::array<std::string, kNumericColumns> numeric_names_;
  const std::array<std::string, kCategoricalColumns> categorical_names_;
  // One record's features and one feature's values, used again for each.
  std::string record_;
  std::string values_;
  std::string held_;
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_CRITEO_CRITEO_WRITER_H_
