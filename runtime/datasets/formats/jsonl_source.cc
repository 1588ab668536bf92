#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/message_text.h"
#include "base/records/input_file.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
#include "base/text/printable.h"
#include "runtime/datasets/formats/column.h"
#include "runtime/datasets/formats/feature_sample.h"
#include "runtime/datasets/formats/record_source.h"
#include "runtime/datasets/formats/source_format.h"

namespace requant {
namespace {

using tensorflow::Tensor;

// The most nested arrays and objects, because the parser recurses.
constexpr int kMostLevels = 100;

struct JsonScalar {
  enum Kind { kNull, kBool, kNumber, kString };

  // Returns whether elements of this type are written as such values.
  bool Fits(tensorflow::DataType dtype) const {
    if (dtype == tensorflow::DT_STRING) return kind == kString;
    return kind == kNumber || (kind == kBool && dtype == tensorflow::DT_BOOL);
  }

  Kind kind = kNull;
  // A string's characters, or the record's text of any other value.
  std::string text;
};

// The value of a key of the record, or those of an array, including nested
// ones, in order.
struct JsonFeature {
  // Values beyond this many are counted but not kept.
  int64_t most = 0;
  bool found = false;
  bool is_array = false;
  bool has_object = false;
  int64_t count = 0;
  std::vector<JsonScalar> values;
};

// May precede the first line; offsets in error messages then include it.
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// Reads one JSON object, strictly following RFC 8259.
class JsonParser {
 public:
  // Is called with a key; returns where its values go, or null to skip them.
  using FeatureOf = std::function<JsonFeature*(const std::string& key)>;

  explicit JsonParser(std::string_view text) : text_(text) {}

  // Returns false at the first mistake, which problem() then describes.
  bool ParseRecord(const FeatureOf& feature_of) {
    if (absl::StartsWith(text_, kByteOrderMark)) at_ = kByteOrderMark.size();
    SkipBlanks();
    if (!Take('{')) return Expected("a JSON object, which starts with '{'");
    if (!ParseMembers(1, &feature_of)) return false;
    SkipBlanks();
    return at_ == text_.size() || Expected("nothing after the object");
  }

  const std::string& problem() const { return problem_; }

 private:
  bool Fail(std::string_view what) {
    problem_ = absl::StrCat("byte ", at_ + 1, ": ", what);
    return false;
  }

  bool Expected(std::string_view what) {
    return Fail(absl::StrCat(
        "expected ", what, ", not ",
        at_ == text_.size() ? "the end of the line"
                            : QuotedField(text_.substr(at_, NextBytes()))));
  }

  size_t NextBytes() const { return FirstCharacter(text_.substr(at_)).bytes; }

  void SkipBlanks() {
    while (at_ < text_.size() &&
           std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) {
      ++at_;
    }
  }

  bool Take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  // Reads what follows the '{' of an object. `feature_of` is null for nested
  // objects, whose values are skipped.
  bool ParseMembers(int level, const FeatureOf* feature_of) {
    SkipBlanks();
    if (Take('}')) return true;
    std::string key;
    do {
      SkipBlanks();
      if (!ParseString(&key, "a key in quotes")) return false;
      JsonFeature* const feature =
          feature_of == nullptr ? nullptr : (*feature_of)(key);
      if (feature != nullptr && feature->found) {
        return Fail(absl::StrCat("key ", QuotedField(key), " is there twice"));
      }
      if (feature != nullptr) feature->found = true;
      SkipBlanks();
      if (!Take(':')) return Expected("':' after a key");
      if (!ParseValue(level, feature)) return false;
      SkipBlanks();
    } while (Take(','));
    return Take('}') || Expected("',' or '}'");
  }

  // Appends the values to `feature`, unless that is null.
  bool ParseValue(int level, JsonFeature* feature) {
    SkipBlanks();
    if (level == kMostLevels && at_ < text_.size() &&
        (text_[at_] == '[' || text_[at_] == '{')) {
      return Fail(absl::StrCat("more than ", kMostLevels,
                               " arrays and objects inside one another"));
    }
    if (Take('{')) {
      if (feature != nullptr) feature->has_object = true;
      return ParseMembers(level + 1, nullptr);
    }
    if (Take('[')) {
      if (feature != nullptr) feature->is_array = true;
      return ParseElements(level + 1, feature);
    }
    JsonScalar scalar;
    if (!ParseScalarValue(&scalar)) return false;
    if (feature != nullptr && feature->count++ < feature->most) {
      feature->values.push_back(std::move(scalar));
    }
    return true;
  }

  bool ParseElements(int level, JsonFeature* feature) {
    SkipBlanks();
    if (Take(']')) return true;
    do {
      if (!ParseValue(level, feature)) return false;
      SkipBlanks();
    } while (Take(','));
    return Take(']') || Expected("',' or ']'");
  }

  bool ParseScalarValue(JsonScalar* scalar) {
    if (at_ < text_.size() && text_[at_] == '"') {
      scalar->kind = JsonScalar::kString;
      return ParseString(&scalar->text, "");
    }
    for (const auto& [word, kind] : {std::pair("true", JsonScalar::kBool),
                                     std::pair("false", JsonScalar::kBool),
                                     std::pair("null", JsonScalar::kNull)}) {
      if (!absl::StartsWith(text_.substr(at_), word)) continue;
      at_ += std::string_view(word).size();
      *scalar = {kind, word};
      return true;
    }
    const size_t start = at_;
    if (!TakeNumber()) return false;
    *scalar = {JsonScalar::kNumber,
               std::string(text_.substr(start, at_ - start))};
    return true;
  }

  bool TakeDigits() {
    const size_t start = at_;
    while (at_ < text_.size() && absl::ascii_isdigit(text_[at_])) ++at_;
    return at_ > start;
  }

  bool TakeNumber() {
    const size_t start = at_;
    Take('-');
    if (!Take('0') && !TakeDigits()) {
      return Expected(at_ == start ? "a value" : "a digit");
    }
    if (Take('.') && !TakeDigits()) return Expected("a digit after '.'");
    if (Take('e') || Take('E')) {
      if (!Take('+')) Take('-');
      if (!TakeDigits()) return Expected("a digit of the exponent");
    }
    return true;
  }

  bool ParseString(std::string* value, std::string_view what) {
    value->clear();
    if (!Take('"')) return Expected(what);
    while (!Take('"')) {
      if (at_ == text_.size()) return Expected("a quote at the string's end");
      const Character next = FirstCharacter(text_.substr(at_));
      if (next.code == kStray) return Expected("UTF-8");
      if (next.code < 0x20) return Expected("no control character in a string");
      if (next.code != '\\') {
        value->append(text_.substr(at_, next.bytes));
        at_ += next.bytes;
      } else if (!TakeEscape(value)) {
        return false;
      }
    }
    return true;
  }

  bool TakeEscape(std::string* value) {
    constexpr std::string_view kEscapes = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    ++at_;
    if (Take('u')) return TakeCode(value);
    const size_t escape =
        at_ == text_.size() ? kEscapes.npos : kEscapes.find(text_[at_]);
    if (escape == kEscapes.npos) {
      return Expected("one of \"\\/bfnrtu after a backslash");
    }
    ++at_;
    value->push_back(kMeanings[escape]);
    return true;
  }

  // Reads four hexadecimal digits, and four more after half a surrogate pair.
  bool TakeCode(std::string* value) {
    uint32_t code = 0, low = 0;
    if (!TakeHex(&code)) return false;
    if (code >= 0xd800 && code < 0xdc00) {
      if (!absl::StartsWith(text_.substr(at_), "\\u")) {
        return Expected("\\u with the second half of a surrogate pair");
      }
      at_ += 2;
      if (!TakeHex(&low)) return false;
      if (low < 0xdc00 || low > 0xdfff) {
        return Fail("the second half of a surrogate pair is none");
      }
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code < 0xe000) {
      return Fail("a surrogate pair lacks its first half");
    }
    AppendUtf8(code, value);
    return true;
  }

  bool TakeHex(uint32_t* code) {
    const std::string_view digits = text_.substr(at_, 4);
    if (digits.size() < 4 ||
        !std::all_of(digits.begin(), digits.end(), absl::ascii_isxdigit)) {
      return Expected("four hexadecimal digits after \\u");
    }
    at_ += 4;
    return absl::SimpleHexAtoi(digits, code);
  }

  const std::string_view text_;
  size_t at_ = 0;
  std::string problem_;
};

// Reads a feature's values into row `row`. Returns what is wrong, or "".
std::string FillRow(const Column& column, const JsonFeature& feature,
                    int64_t row, Tensor* rows) {
  const bool is_null = feature.count == 1 && !feature.is_array &&
                       feature.values[0].kind == JsonScalar::kNull;
  if (!feature.found || is_null) {
    if (column.default_value.has_value()) {
      FillDefault(column, row, rows);
      return "";
    }
    return absl::StrCat("feature \"", column.feature,
                        is_null ? "\" is null" : "\" is missing", kNoDefault);
  }
  if (feature.has_object) {
    return absl::StrCat("feature \"", column.feature,
                        "\" has an object, not values");
  }
  if (feature.count != column.elements) {
    return absl::StrCat("feature \"", column.feature, "\" has ",
                        CountText(feature.count, "value"), ", not ",
                        column.elements);
  }
  const ParseFunction parse = ParserOf(column.dtype);
  char* element = static_cast<char*>(RowAddress(*rows, column, row));
  for (const JsonScalar& value : feature.values) {
    if (!value.Fits(column.dtype) || !parse(value.text, element)) {
      const std::string shown = QuotedField(value.text);
      return absl::StrCat(
          "feature \"", column.feature, "\" has ",
          value.kind == JsonScalar::kString
              ? shown
              : std::string_view(shown).substr(1, shown.size() - 2),
          ", which is no ", tensorflow::DataTypeString(column.dtype));
    }
    element += ElementBytes(column.dtype);
  }
  return "";
}

// Decodes lines. Columns may share a feature.
class JsonlDecoder {
 public:
  explicit JsonlDecoder(const std::vector<Column>& columns)
      : columns_(columns) {
    for (const Column& column : columns) {
      int64_t& most = most_[column.feature];
      most = std::max(most, column.elements);
    }
  }

  std::string operator()(std::string_view record, int64_t row,
                         std::vector<Tensor>* rows) const {
    if (record.empty()) {
      return absl::StrCat("the line has more than ", kMaxTextRecordBytes >> 20,
                          " MB");
    }
    std::map<std::string_view, JsonFeature> features;
    for (const auto& [name, most] : most_) features[name].most = most;
    JsonParser parser(record);
    if (!parser.ParseRecord([&](const std::string& key) {
          const auto found = features.find(key);
          return found == features.end() ? nullptr : &found->second;
        })) {
      return parser.problem();
    }
    for (size_t c = 0; c < columns_.size(); ++c) {
      const JsonFeature& feature = features[columns_[c].feature];
      const std::string problem =
          FillRow(columns_[c], feature, row, &(*rows)[c]);
      if (!problem.empty() && !feature.found) {
        return absl::StrCat(problem,
                            DidYouMean(columns_[c].feature, KeysOf(record)));
      }
      if (!problem.empty()) return problem;
    }
    return "";
  }

 private:
  // Returns the keys to search for one that is similar to a missing one.
  static std::vector<std::string> KeysOf(std::string_view record) {
    constexpr size_t kMostKeys = 1000;
    constexpr size_t kLongestKey = 256;
    std::vector<std::string> keys;
    JsonParser(record).ParseRecord([&](const std::string& key) {
      if (keys.size() < kMostKeys && key.size() <= kLongestKey) {
        keys.push_back(key);
      }
      return static_cast<JsonFeature*>(nullptr);
    });
    return keys;
  }

  const std::vector<Column> columns_;
  // The most values that columns take of each feature.
  std::map<std::string, int64_t> most_;
};

class JsonlReader : public RecordReader {
 public:
  explicit JsonlReader(std::unique_ptr<InputFile> file)
      : lines_(std::move(file), kMaxTextRecordBytes) {}

  // For a line that is too long, the record is empty.
  absl::StatusOr<bool> Read(std::string* bytes) override {
    for (;;) {
      std::string_view line;
      REQUANT_ASSIGN_OR_RETURN(const bool more, lines_.Next(&line));
      if (!more) return false;
      line = absl::StripTrailingAsciiWhitespace(line);
      const bool is_blank =
          line.empty() || (lines_.number() == 1 && line == kByteOrderMark);
      if (is_blank && !lines_.too_long()) continue;
      bytes->append(line);
      return true;
    }
  }

  int64_t number() const override { return lines_.number(); }
  int64_t position() const override { return lines_.position(); }

 private:
  LineReader lines_;
};

tensorflow::DataType TypeOfScalar(const JsonScalar& scalar) {
  switch (scalar.kind) {
    case JsonScalar::kNumber:
      return TypeOfText(scalar.text);
    case JsonScalar::kBool:
      return tensorflow::DT_BOOL;
    case JsonScalar::kString:
      return tensorflow::DT_STRING;
    default:
      return tensorflow::DT_INVALID;
  }
}

// Adds the record's keys and their values.
void SampleRecord(std::string_view record, FileSample* sample) {
  constexpr int64_t kMostValues = 4096;
  std::map<std::string, JsonFeature> features;
  if (!JsonParser(record).ParseRecord(
          [&](const std::string& key) -> JsonFeature* {
            if (features.size() == kMostSampledFeatures) return nullptr;
            JsonFeature& feature = features[key];
            feature.most = kMostValues;
            return &feature;
          })) {
    return;
  }
  for (const auto& [name, feature] : features) {
    FeatureSample& sampled = (*sample)[name];
    tensorflow::DataType type = tensorflow::DT_INVALID;
    for (const JsonScalar& value : feature.values) {
      type = CommonType(type, TypeOfScalar(value));
    }
    if (feature.has_object || type == tensorflow::DT_INVALID) continue;
    sampled.Add(type, feature.count);
  }
}

absl::StatusOr<FileSample> SampleJsonl(const std::string& path) {
  REQUANT_ASSIGN_OR_RETURN(auto file, InputFile::Open(path));
  JsonlReader reader(std::move(file));
  FileSample sample;
  for (int64_t i = 0; i < kSampledRecords; ++i) {
    std::string record;
    const absl::StatusOr<bool> more = reader.Read(&record);
    if (!more.ok() || !*more) break;
    SampleRecord(record, &sample);
  }
  return sample;
}

}  // namespace

const SourceFormat kJsonlFormat = {
    DatasetSpec::kJsonl,
    [](DatasetSpec* spec) { return spec->mutable_jsonl()->mutable_files(); },
    /*check=*/nullptr,
    [](const DatasetSpec& spec, const std::vector<Column>& columns)
        -> absl::StatusOr<std::unique_ptr<ChunkSource>> {
      return OpenRecordSource(
          spec.jsonl().files(), RecordNames::kLines, columns,
          [decode = RowDecoder(columns, JsonlDecoder(columns))](
              const std::string& path) -> absl::StatusOr<RecordFile> {
            REQUANT_ASSIGN_OR_RETURN(auto file, InputFile::Open(path));
            return RecordFile{std::make_unique<JsonlReader>(std::move(file)),
                              decode};
          });
    },
    SampleJsonl};

}  // namespace requant
