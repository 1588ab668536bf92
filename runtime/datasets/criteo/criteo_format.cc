#include "runtime/datasets/criteo/criteo_format.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "google/protobuf/util/json_util.h"

// FarmHash's, part of TensorFlow's library; its header is not in the wheel.
namespace util {
uint64_t Fingerprint64(const char* data, size_t size);
}  // namespace util

namespace requant {
namespace {

// Far more than 13 columns take.
constexpr int64_t kMaxRangesBytes = 1 << 20;

absl::Status SetColumn(const CriteoRanges::Column& column, bool* seen,
                       NumericRanges* ranges) {
  for (int i = 0; i < kNumericColumns; ++i) {
    if (column.name() != NumericName(i)) continue;
    if (seen[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat("column ", column.name(), " is there twice"));
    }
    if (!std::isfinite(column.min()) || !std::isfinite(column.range()) ||
        column.range() <= 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "column ", column.name(), " needs a finite min and a range above 0"));
    }
    seen[i] = true;
    ranges->min[i] = column.min();
    ranges->range[i] = column.range();
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no column \"", column.name(), "\""));
}

absl::StatusOr<NumericRanges> RangesOf(const CriteoRanges& message) {
  NumericRanges ranges;
  bool seen[kNumericColumns] = {};
  for (const CriteoRanges::Column& column : message.column()) {
    REQUANT_RETURN_IF_ERROR(SetColumn(column, seen, &ranges));
  }
  for (int i = 0; i < kNumericColumns; ++i) {
    if (!seen[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat("column ", NumericName(i), " is missing"));
    }
  }
  return ranges;
}

}  // namespace

std::string NumericName(int column) { return absl::StrCat("I", column + 1); }

std::string CategoricalName(int column) {
  return absl::StrCat("C", column + 1);
}

std::vector<std::string> CriteoColumnNames() {
  std::vector<std::string> names = {"label"};
  for (int i = 0; i < kNumericColumns; ++i) names.push_back(NumericName(i));
  for (int i = 0; i < kCategoricalColumns; ++i) {
    names.push_back(CategoricalName(i));
  }
  return names;
}

int64_t HashBucket(std::string_view category, int64_t buckets) {
  return static_cast<int64_t>(
      util::Fingerprint64(category.data(), category.size()) %
      static_cast<uint64_t>(buckets));
}

void RangeCollector::Add(const CriteoRecord& record) {
  if (records_++ == 0) {
    min_ = max_ = record.numeric;
    return;
  }
  for (int i = 0; i < kNumericColumns; ++i) {
    min_[i] = std::min(min_[i], record.numeric[i]);
    max_[i] = std::max(max_[i], record.numeric[i]);
  }
}

absl::StatusOr<NumericRanges> RangeCollector::Ranges() const {
  if (records_ == 0) {
    return absl::InvalidArgumentError(
        "there is no record to compute ranges over");
  }
  NumericRanges ranges;
  for (int i = 0; i < kNumericColumns; ++i) {
    ranges.min[i] = min_[i];
    ranges.range[i] = max_[i] - min_[i];
    if (ranges.range[i] == 0) ranges.range[i] = 1;
    if (!std::isfinite(ranges.range[i])) {
      return absl::InvalidArgumentError(
          absl::StrCat("the range of column ", NumericName(i), " (", min_[i],
                       " to ", max_[i], ") is beyond float32"));
    }
  }
  return ranges;
}

std::string RangesAsJson(const NumericRanges& ranges, int64_t records) {
  CriteoRanges message;
  message.set_records(records);
  for (int i = 0; i < kNumericColumns; ++i) {
    CriteoRanges::Column* column = message.add_column();
    column->set_name(NumericName(i));
    column->set_min(ranges.min[i]);
    column->set_range(ranges.range[i]);
  }
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_fields_with_no_presence = true;
  std::string json;
  // Finite numbers and ASCII names always print.
  google::protobuf::util::MessageToJsonString(message, &json, options)
      .IgnoreError();
  return json;
}

absl::StatusOr<NumericRanges> ReadRanges(const std::string& path) {
  REQUANT_ASSIGN_OR_RETURN(const std::string json,
                           ReadFile(path, kMaxRangesBytes));
  CriteoRanges message;
  absl::Status parsed =
      google::protobuf::util::JsonStringToMessage(json, &message);
  absl::StatusOr<NumericRanges> ranges =
      parsed.ok() ? RangesOf(message) : parsed;
  if (!ranges.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     " is not a file of ranges, as preprocess "
                     "--ranges_out writes it: ",
                     ranges.status().message()));
  }
  return ranges;
}

}  // namespace requant
