#include "runtime/datasets/criteo/criteo_writer.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "absl/crc/crc32c.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/datasets/criteo/criteo_format.h"

namespace requant {
namespace {

constexpr size_t kHeldBytes = 1 << 20;

// Fields of tensorflow/core/example/{example,feature}.proto.
constexpr int kExampleFeatures = 1;
constexpr int kFeaturesEntry = 1;
constexpr int kEntryKey = 1;
constexpr int kEntryValue = 2;
constexpr int kFeatureBytes = 1;
constexpr int kFeatureFloats = 2;
constexpr int kFeatureInts = 3;
constexpr int kListValue = 1;

void AppendVarint(uint64_t value, std::string* out) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

size_t VarintSize(uint64_t value) {
  size_t size = 1;
  while (value >= 0x80) {
    value >>= 7;
    ++size;
  }
  return size;
}

// The size of a field that holds `size` bytes: tags are one byte each here.
size_t FieldSize(size_t size) { return 1 + VarintSize(size) + size; }

void AppendFieldStart(int number, size_t size, std::string* out) {
  constexpr int kLengthDelimited = 2;
  out->push_back(static_cast<char>(number << 3 | kLengthDelimited));
  AppendVarint(size, out);
}

void AppendField(int number, std::string_view bytes, std::string* out) {
  AppendFieldStart(number, bytes.size(), out);
  out->append(bytes);
}

// One entry of an Example's feature map whose list holds the field `value`: a
// string, or packed numbers.
void AppendFeature(std::string_view name, int list, std::string_view value,
                   std::string* out) {
  const size_t list_size = FieldSize(value.size());
  const size_t feature_size = FieldSize(list_size);
  AppendFieldStart(kFeaturesEntry,
                   FieldSize(name.size()) + FieldSize(feature_size), out);
  AppendField(kEntryKey, name, out);
  AppendFieldStart(kEntryValue, feature_size, out);
  AppendFieldStart(list, list_size, out);
  AppendField(kListValue, value, out);
}

// The lowest byte first.
void AppendFixed(uint64_t value, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i) {
    out->push_back(static_cast<char>(value >> 8 * i));
  }
}

void AppendFloat(float value, std::string* out) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  AppendFixed(bits, sizeof(bits), out);
}

void AppendLabel(int64_t label, std::string* out) {
  const char byte = static_cast<char>(label);
  AppendFeature("label", kFeatureInts, std::string_view(&byte, 1), out);
}

uint32_t MaskedCrc(std::string_view data) {
  const uint32_t crc = static_cast<uint32_t>(absl::ComputeCrc32c(data));
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

// A TFRecord: length, its checksum, the Example's only field, its checksum.
void AppendTfRecord(std::string_view features, std::string* out) {
  std::string start;
  AppendFieldStart(kExampleFeatures, features.size(), &start);
  size_t begin = out->size();
  AppendFixed(start.size() + features.size(), 8, out);
  AppendFixed(MaskedCrc(std::string_view(*out).substr(begin)), 4, out);
  begin = out->size();
  absl::StrAppend(out, start, features);
  AppendFixed(MaskedCrc(std::string_view(*out).substr(begin)), 4, out);
}

void AppendNumber(float value, std::string* out) {
  char buffer[64];
  const auto end = value == std::floor(value) && std::abs(value) < 1e9f
                       ? std::to_chars(buffer, buffer + sizeof(buffer),
                                       static_cast<int64_t>(value))
                       : std::to_chars(buffer, buffer + sizeof(buffer), value);
  out->append(buffer, end.ptr - buffer);
}

template <size_t size>
std::array<std::string, size> Names(std::string (*name)(int)) {
  std::array<std::string, size> names;
  for (size_t i = 0; i < size; ++i) names[i] = name(i);
  return names;
}

}  // namespace

std::optional<CriteoFormat> CriteoFormatNamed(std::string_view name) {
  if (name == "csv") return CriteoFormat::kCsv;
  if (name == "tfrecord") return CriteoFormat::kTfRecord;
  if (name == "preprocessed") return CriteoFormat::kPreprocessed;
  return std::nullopt;
}

CriteoWriter::CriteoWriter(int fd, CriteoFormat format,
                           const NumericRanges& ranges, int64_t buckets)
    : fd_(fd),
      format_(format),
      ranges_(ranges),
      buckets_(buckets),
      numeric_names_(Names<kNumericColumns>(NumericName)),
      categorical_names_(Names<kCategoricalColumns>(CategoricalName)) {}

absl::Status CriteoWriter::Write(const CriteoRecord& record) {
  switch (format_) {
    case CriteoFormat::kCsv:
      AppendCsv(record);
      break;
    case CriteoFormat::kTfRecord:
      AppendRaw(record);
      break;
    case CriteoFormat::kPreprocessed:
      AppendPreprocessed(record);
      break;
  }
  return held_.size() < kHeldBytes ? absl::OkStatus() : Flush();
}

absl::Status CriteoWriter::Flush() {
  std::string_view left = held_;
  while (!left.empty()) {
    const ssize_t written = write(fd_, left.data(), left.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return absl::ResourceExhaustedError(std::strerror(errno));
    }
    left.remove_prefix(written);
  }
  held_.clear();
  return absl::OkStatus();
}

void CriteoWriter::AppendCsv(const CriteoRecord& record) {
  absl::StrAppend(&held_, record.label);
  for (int i = 0; i < kNumericColumns; ++i) {
    held_.push_back(',');
    if ((record.missing_numeric >> i & 1) == 0) {
      AppendNumber(record.numeric[i], &held_);
    }
  }
  for (std::string_view category : record.categorical) {
    held_.push_back(',');
    if (category != kMissingCategorical) held_.append(category);
  }
  held_.push_back('\n');
}

void CriteoWriter::AppendRaw(const CriteoRecord& record) {
  record_.clear();
  AppendLabel(record.label, &record_);
  for (int i = 0; i < kNumericColumns; ++i) {
    values_.clear();
    AppendFloat(record.numeric[i], &values_);
    AppendFeature(numeric_names_[i], kFeatureFloats, values_, &record_);
  }
  for (int i = 0; i < kCategoricalColumns; ++i) {
    AppendFeature(categorical_names_[i], kFeatureBytes, record.categorical[i],
                  &record_);
  }
  AppendTfRecord(record_, &held_);
}

void CriteoWriter::AppendPreprocessed(const CriteoRecord& record) {
  record_.clear();
  values_.clear();
  AppendLabel(record.label, &record_);
  for (int column : kNumericOrder) {
    AppendFloat(Normalize(record.numeric[column], ranges_, column), &values_);
  }
  AppendFeature("numeric_1", kFeatureFloats, values_, &record_);
  values_.clear();
  for (int i = 0; i < kCategoricalColumns; ++i) {
    AppendVarint(i, &values_);
    AppendVarint(HashBucket(record.categorical[kCategoricalOrder[i]], buckets_),
                 &values_);
  }
  AppendFeature("string_1", kFeatureInts, values_, &record_);
  AppendTfRecord(record_, &held_);
}

}  // namespace requant
