#include "runtime/datasets/criteo/criteo_format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/charconv.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/records/input_file.h"
#include "base/records/record_format.h"
#include "base/status_macros.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/util/json_util.h"
#include "runtime/datasets/criteo/criteo_ranges.pb.h"

// FarmHash's function, in TensorFlow's library; the wheel lacks its header.
namespace util {
uint64_t Fingerprint64(const char* data, size_t size);
}  // namespace util

namespace requant {
namespace {

// This is far more than 13 columns need.
constexpr int64_t kMaxRangesBytes = 1 << 20;

absl::StatusOr<NumericRanges> RangesOf(const CriteoRanges& message) {
  std::map<std::string, int> missing;
  for (int i = 0; i < kNumericColumns; ++i) missing.emplace(NumericName(i), i);
  const std::map<std::string, int> all = missing;
  NumericRanges ranges;
  for (const CriteoRanges::Column& column : message.column()) {
    const auto found = all.find(column.name());
    if (found == all.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no column \"", column.name(), "\""));
    }
    if (missing.erase(column.name()) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("column ", column.name(), " is there twice"));
    }
    if (!std::isfinite(column.min()) || !std::isfinite(column.range()) ||
        column.range() <= 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "column ", column.name(), " needs a finite min and a range above 0"));
    }
    ranges.min[found->second] = column.min();
    ranges.range[found->second] = column.range();
  }
  for (int i = 0; i < kNumericColumns; ++i) {
    if (missing.count(NumericName(i)) == 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("column ", NumericName(i), " is missing"));
  }
  return ranges;
}

constexpr int kFirstNumeric = 1;
constexpr int kFirstCategorical = kFirstNumeric + kNumericColumns;
constexpr int kCriteoColumns = kFirstCategorical + kCategoricalColumns;

// A longer line is a bad row.
constexpr int64_t kMaxLineBytes = 1 << 16;

using Fields = std::array<std::string_view, kCriteoColumns>;

// Returns a field as messages show it.
std::string Shown(std::string_view field) {
  constexpr size_t kMostBytes = 40;
  return absl::StrCat("\"", absl::CHexEscape(field.substr(0, kMostBytes)),
                      field.size() > kMostBytes ? "..." : "", "\"");
}

absl::Status WrongColumnCount(int64_t count) {
  return absl::InvalidArgumentError(absl::StrCat(
      "the row has ", count, count == 1 ? " column" : " columns", ", not ",
      kCriteoColumns, " (label, I1 ... I13, C1 ... C26)",
      count == kCriteoColumns - 1 ? "; rows without a label cannot be used"
                                  : ""));
}

absl::Status Split(std::string_view line, char delimiter, Fields* fields) {
  int count = 0;
  const char* begin = line.data();
  const char* const end = begin + line.size();
  while (count < kCriteoColumns) {
    const void* found = std::memchr(begin, delimiter, end - begin);
    const char* stop = found ? static_cast<const char*>(found) : end;
    (*fields)[count++] = std::string_view(begin, stop - begin);
    if (!found) {
      return count == kCriteoColumns ? absl::OkStatus()
                                     : WrongColumnCount(count);
    }
    begin = stop + 1;
  }
  int64_t all = count + 1;
  for (const char* p = begin; p != end; ++p) all += *p == delimiter;
  return WrongColumnCount(all);
}

// Parses integers of up to 8 digits, which nearly all fields are.
bool ParseShortInteger(std::string_view field, float* value) {
  const bool negative = field[0] == '-';
  const std::string_view digits = field.substr(negative ? 1 : 0);
  if (digits.empty() || digits.size() > 8) return false;
  int32_t number = 0;
  for (char c : digits) {
    if (c < '0' || c > '9') return false;
    number = number * 10 + (c - '0');
  }
  *value = static_cast<float>(negative ? -number : number);
  return true;
}

// Ignores blanks around the number. A number too small for a float becomes the
// nearest float, perhaps 0.
bool ParseNumber(std::string_view field, float* value) {
  if (ParseShortInteger(field, value)) return true;
  field = absl::StripAsciiWhitespace(field);
  const char* const end = field.data() + field.size();
  const auto parsed = std::from_chars(field.data(), end, *value);
  if (parsed.ptr != end) return false;
  if (parsed.ec == std::errc::result_out_of_range) {
    // Unlike the above, this distinguishes too small from too large.
    absl::from_chars(field.data(), end, *value);
    return std::abs(*value) < 1;
  }
  return parsed.ec == std::errc() && std::isfinite(*value);
}

// Returns whether the fields can be the columns' names, i.e. none of the label
// and numeric fields is a number.
bool LooksLikeHeader(const Fields& fields) {
  for (int i = 0; i < kFirstCategorical; ++i) {
    float value;
    if (fields[i].empty() || ParseNumber(fields[i], &value)) return false;
  }
  return true;
}

// Accepts foreign names, but rejects our names in the wrong place.
absl::Status CheckHeader(const std::string& path, const Fields& fields) {
  const std::vector<std::string> names = CriteoColumnNames();
  for (int i = 0; i < kCriteoColumns; ++i) {
    for (int j = 0; j < kCriteoColumns; ++j) {
      if (i != j && absl::EqualsIgnoreCase(fields[i], names[j])) {
        return absl::InvalidArgumentError(absl::StrCat(
            path, ":1: column ", i + 1, " is ", names[j], ", but ", names[j],
            " must be column ", j + 1, " (label, I1 ... I13, C1 ... C26)"));
      }
    }
  }
  return absl::OkStatus();
}

// Fills `record` from one line without its line break; its views point into
// `line`. The error says what is wrong with the row.
absl::Status ParseCriteoLine(std::string_view line, char delimiter,
                             CriteoRecord* record) {
  if (line.empty()) return absl::InvalidArgumentError("the line is empty");
  Fields fields;
  REQUANT_RETURN_IF_ERROR(Split(line, delimiter, &fields));
  if (fields[0] != "0" && fields[0] != "1") {
    return absl::InvalidArgumentError(
        absl::StrCat("the label is ", Shown(fields[0]), ", not 0 or 1"));
  }
  record->label = fields[0][0] - '0';
  record->missing_numeric = 0;
  for (int i = 0; i < kNumericColumns; ++i) {
    const std::string_view field = fields[kFirstNumeric + i];
    if (field.empty()) {
      record->numeric[i] = kMissingNumeric;
      record->missing_numeric |= 1u << i;
    } else if (!ParseNumber(field, &record->numeric[i])) {
      return absl::InvalidArgumentError(absl::StrCat(
          "column ", NumericName(i), " is ", Shown(field), ", not a number"));
    }
  }
  for (int i = 0; i < kCategoricalColumns; ++i) {
    const std::string_view field = fields[kFirstCategorical + i];
    if (!field.empty() && field[0] == '"') {
      return absl::InvalidArgumentError(
          absl::StrCat("column ", CategoricalName(i),
                       " is in quotes; values must stand without them"));
    }
    record->categorical[i] = field.empty() ? kMissingCategorical : field;
  }
  return absl::OkStatus();
}

// Sets the delimiter from the first line; returns whether it is a header.
absl::StatusOr<bool> ReadFirstLine(const std::string& path,
                                   std::string_view* line, char* delimiter) {
  if (absl::StartsWith(*line, "\x1f\x8b")) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is compressed by gzip: unpack it first"));
  }
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (absl::StartsWith(*line, kByteOrderMark)) {
    line->remove_prefix(kByteOrderMark.size());
  }
  if (absl::StrContains(*line, '\t')) *delimiter = '\t';
  Fields fields;
  if (!Split(*line, *delimiter, &fields).ok() || !LooksLikeHeader(fields)) {
    return false;
  }
  REQUANT_RETURN_IF_ERROR(CheckHeader(path, fields));
  return true;
}

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

// Returns the size of a field that holds `size` bytes, given that all tags here
// take one byte.
size_t FieldSize(size_t size) {
  return 1 + google::protobuf::io::CodedOutputStream::VarintSize64(size) + size;
}

void AppendFieldStart(int number, size_t size, std::string* out) {
  constexpr int kLengthDelimited = 2;
  out->push_back(static_cast<char>(number << 3 | kLengthDelimited));
  AppendVarint(size, out);
}

void AppendField(int number, std::string_view bytes, std::string* out) {
  AppendFieldStart(number, bytes.size(), out);
  out->append(bytes);
}

// Appends one entry of an Example's feature map whose list holds the field
// `value`: a string, or packed numbers.
void AppendFeature(std::string_view name, int list, std::string_view value,
                   std::string* features) {
  const size_t list_size = FieldSize(value.size());
  const size_t feature_size = FieldSize(list_size);
  AppendFieldStart(kFeaturesEntry,
                   FieldSize(name.size()) + FieldSize(feature_size), features);
  AppendField(kEntryKey, name, features);
  AppendFieldStart(kEntryValue, feature_size, features);
  AppendFieldStart(list, list_size, features);
  AppendField(kListValue, value, features);
}

std::string_view BytesOfFloat(const float& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

void AppendNumber(float value, std::string* out) {
  char buffer[64];
  const auto end = value == std::floor(value) && std::abs(value) < 1e9f
                       ? std::to_chars(buffer, buffer + sizeof(buffer),
                                       static_cast<int64_t>(value))
                       : std::to_chars(buffer, buffer + sizeof(buffer), value);
  out->append(buffer, end.ptr - buffer);
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
  // Finite numbers and ASCII names can always be printed.
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

absl::Status ReadCriteoText(
    const std::string& path,
    const std::function<absl::Status(const CriteoRecord& record,
                                     int64_t bytes)>& on_row,
    const std::function<absl::Status(int64_t line, std::string_view reason)>&
        on_bad_row) {
  REQUANT_ASSIGN_OR_RETURN(auto file, InputFile::OpenPlain(path));
  LineReader lines(std::move(file), kMaxLineBytes);
  char delimiter = ',';
  CriteoRecord record;
  std::string_view line;
  for (;;) {
    REQUANT_ASSIGN_OR_RETURN(const bool more, lines.Next(&line));
    if (!more) return absl::OkStatus();
    if (lines.number() == 1) {
      REQUANT_ASSIGN_OR_RETURN(const bool is_header,
                               ReadFirstLine(path, &line, &delimiter));
      if (is_header) continue;
    }
    const absl::Status parsed =
        lines.too_long()
            ? absl::InvalidArgumentError(absl::StrCat("the line has more than ",
                                                      kMaxLineBytes, " bytes"))
            : ParseCriteoLine(line, delimiter, &record);
    REQUANT_RETURN_IF_ERROR(parsed.ok()
                                ? on_row(record, lines.position())
                                : on_bad_row(lines.number(), parsed.message()));
  }
}

CriteoWriter::CriteoWriter(int fd, CriteoFormat format,
                           const NumericRanges& ranges, int64_t buckets)
    : fd_(fd),
      format_(format),
      ranges_(ranges),
      buckets_(buckets),
      names_(CriteoColumnNames()) {}

absl::Status CriteoWriter::Write(const CriteoRecord& record) {
  if (format_ == CriteoFormat::kCsv) {
    AppendCsv(record);
  } else {
    features_.clear();
    const char label = static_cast<char>(record.label);
    AppendFeature("label", kFeatureInts, std::string_view(&label, 1),
                  &features_);
    if (format_ == CriteoFormat::kTfRecord) {
      AppendRaw(record);
    } else {
      AppendPreprocessed(record);
    }
    example_.clear();
    AppendField(kExampleFeatures, features_, &example_);
    AppendRecord(example_, &held_);
  }
  return held_.size() < kHeldBytes ? absl::OkStatus() : Flush();
}

absl::Status CriteoWriter::Flush() {
  REQUANT_RETURN_IF_ERROR(WriteAll(fd_, held_));
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
  for (int i = 0; i < kNumericColumns; ++i) {
    AppendFeature(names_[kFirstNumeric + i], kFeatureFloats,
                  BytesOfFloat(record.numeric[i]), &features_);
  }
  for (int i = 0; i < kCategoricalColumns; ++i) {
    AppendFeature(names_[kFirstCategorical + i], kFeatureBytes,
                  record.categorical[i], &features_);
  }
}

void CriteoWriter::AppendPreprocessed(const CriteoRecord& record) {
  std::string values;
  for (int column : kNumericOrder) {
    values += BytesOfFloat(Normalize(record.numeric[column], ranges_, column));
  }
  AppendFeature("numeric_1", kFeatureFloats, values, &features_);
  values.clear();
  for (int i = 0; i < kCategoricalColumns; ++i) {
    AppendVarint(i, &values);
    AppendVarint(HashBucket(record.categorical[kCategoricalOrder[i]], buckets_),
                 &values);
  }
  AppendFeature("string_1", kFeatureInts, values, &features_);
}

}  // namespace requant
