#include "runtime/datasets/criteo/criteo_files.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <system_error>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/ascii.h"
#include "absl/strings/charconv.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/records/record_format.h"
#include "base/status_macros.h"
#include "google/protobuf/io/coded_stream.h"

namespace requant {
namespace {

constexpr int kFirstNumeric = 1;
constexpr int kFirstCategorical = kFirstNumeric + kNumericColumns;

using Fields = std::array<std::string_view, kCriteoColumns>;

// Returns a field as a message shows it.
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

// Integers of up to 8 digits, which nearly all fields are.
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

// Blanks around the number do not matter. What is too small for a float is the
// float next to it, perhaps 0.
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

// Returns whether the fields can be the columns' names: nothing among label and
// numbers is a number.
bool LooksLikeHeader(const Fields& fields) {
  for (int i = 0; i < kFirstCategorical; ++i) {
    float value;
    if (fields[i].empty() || ParseNumber(fields[i], &value)) return false;
  }
  return true;
}

// Names of other people's are fine, ours in another place are not.
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

// Returns the size of a field that holds `size` bytes: tags are one byte each
// here.
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

void AppendFloat(float value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void AppendLabel(int64_t label, std::string* out) {
  const char byte = static_cast<char>(label);
  AppendFeature("label", kFeatureInts, std::string_view(&byte, 1), out);
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

absl::StatusOr<std::unique_ptr<CriteoCsvReader>> CriteoCsvReader::Open(
    const std::string& path, BadRow on_bad_row) {
  REQUANT_ASSIGN_OR_RETURN(auto file, InputFile::OpenPlain(path));
  return absl::WrapUnique(
      new CriteoCsvReader(path, std::move(file), std::move(on_bad_row)));
}

CriteoCsvReader::CriteoCsvReader(const std::string& path,
                                 std::unique_ptr<InputFile> file,
                                 BadRow on_bad_row)
    : path_(path),
      lines_(std::move(file), kMaxLineBytes),
      on_bad_row_(std::move(on_bad_row)) {}

absl::StatusOr<bool> CriteoCsvReader::Next(CriteoRecord* record) {
  for (;;) {
    std::string_view line;
    REQUANT_ASSIGN_OR_RETURN(const bool more, lines_.Next(&line));
    if (!more) return false;
    if (lines_.number() == 1) {
      REQUANT_ASSIGN_OR_RETURN(const bool header, ReadFirstLine(&line));
      if (header) continue;
    }
    const absl::Status parsed =
        lines_.too_long()
            ? absl::InvalidArgumentError(absl::StrCat("the line has more than ",
                                                      kMaxLineBytes, " bytes"))
            : ParseCriteoLine(line, delimiter_, record);
    if (parsed.ok()) return true;
    REQUANT_RETURN_IF_ERROR(on_bad_row_(lines_.number(), parsed.message()));
  }
}

absl::StatusOr<bool> CriteoCsvReader::ReadFirstLine(std::string_view* line) {
  if (absl::StartsWith(*line, "\x1f\x8b")) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, " is compressed by gzip: unpack it first"));
  }
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (absl::StartsWith(*line, kByteOrderMark)) {
    line->remove_prefix(kByteOrderMark.size());
  }
  if (absl::StrContains(*line, '\t')) delimiter_ = '\t';
  Fields fields;
  if (!Split(*line, delimiter_, &fields).ok() || !LooksLikeHeader(fields)) {
    return false;
  }
  REQUANT_RETURN_IF_ERROR(CheckHeader(path_, fields));
  return true;
}

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
      names_(CriteoColumnNames()) {}

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
  REQUANT_RETURN_IF_ERROR(WriteAll(fd_, held_));
  held_.clear();
  return absl::OkStatus();
}

// Writes the features, which are an Example's only field.
void CriteoWriter::AppendExample() {
  example_.clear();
  AppendField(kExampleFeatures, record_, &example_);
  AppendRecord(example_, &held_);
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
    AppendFeature(names_[kFirstNumeric + i], kFeatureFloats, values_, &record_);
  }
  for (int i = 0; i < kCategoricalColumns; ++i) {
    AppendFeature(names_[kFirstCategorical + i], kFeatureBytes,
                  record.categorical[i], &record_);
  }
  AppendExample();
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
  AppendExample();
}

}  // namespace requant
