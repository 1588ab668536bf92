#include "runtime/datasets/criteo/criteo_csv.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/charconv.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "runtime/datasets/criteo/criteo_format.h"

namespace requant {
namespace {

constexpr size_t kBufferBytes = 1 << 20;
constexpr int kFirstNumeric = 1;
constexpr int kFirstCategorical = kFirstNumeric + kNumericColumns;

using Fields = std::array<std::string_view, kCriteoColumns>;

// A field as a message shows it.
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
    // Unlike the above, this tells too small from too large.
    absl::from_chars(field.data(), end, *value);
    return std::abs(*value) < 1;
  }
  return parsed.ec == std::errc() && std::isfinite(*value);
}

// Whether the fields can be the columns' names: nothing among label and numbers
// is a number.
bool LooksLikeHeader(const Fields& fields) {
  for (int i = 0; i < kFirstCategorical; ++i) {
    float value;
    if (fields[i].empty() || ParseNumber(fields[i], &value)) return false;
  }
  return true;
}

// Names of other people's are fine, ours in another place are not.
absl::Status CheckHeader(const std::string& path, const Fields& fields) {
  std::vector<std::string> names = {"label"};
  for (int i = 0; i < kNumericColumns; ++i) names.push_back(NumericName(i));
  for (int i = 0; i < kCategoricalColumns; ++i) {
    names.push_back(CategoricalName(i));
  }
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

absl::Status CannotRead(const std::string& path, int error) {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot read ", path, ": ", std::strerror(error)));
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
  const int fd = path == "-" ? dup(STDIN_FILENO)
                             : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return CannotRead(path, errno);
  return absl::WrapUnique(new CriteoCsvReader(path, fd, std::move(on_bad_row)));
}

CriteoCsvReader::CriteoCsvReader(const std::string& path, int fd,
                                 BadRow on_bad_row)
    : path_(path),
      fd_(fd),
      on_bad_row_(std::move(on_bad_row)),
      buffer_(kBufferBytes, '\0') {}

CriteoCsvReader::~CriteoCsvReader() { close(fd_); }

absl::StatusOr<bool> CriteoCsvReader::Next(CriteoRecord* record) {
  for (;;) {
    std::string_view line;
    REQUANT_ASSIGN_OR_RETURN(const bool more, NextLine(&line));
    if (!more) return false;
    if (line_ == 1) {
      REQUANT_ASSIGN_OR_RETURN(const bool header, ReadFirstLine(&line));
      if (header) continue;
    }
    const absl::Status parsed =
        too_long_ ? absl::InvalidArgumentError(absl::StrCat(
                        "the line has more than ", kMaxLineBytes, " bytes"))
                  : ParseCriteoLine(line, delimiter_, record);
    if (parsed.ok()) return true;
    REQUANT_RETURN_IF_ERROR(on_bad_row_(line_, parsed.message()));
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

absl::Status CriteoCsvReader::Fill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  for (;;) {
    const ssize_t got = read(fd_, &buffer_[end_], buffer_.size() - end_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return CannotRead(path_, errno);
    end_ += got;
    at_end_ = got == 0;
    return absl::OkStatus();
  }
}

absl::Status CriteoCsvReader::SkipToLineEnd() {
  for (;;) {
    const void* found = std::memchr(&buffer_[begin_], '\n', end_ - begin_);
    const size_t skip =
        found ? static_cast<const char*>(found) + 1 - &buffer_[begin_]
              : end_ - begin_;
    begin_ += skip;
    bytes_ += skip;
    if (found || at_end_) return absl::OkStatus();
    REQUANT_RETURN_IF_ERROR(Fill());
  }
}

absl::StatusOr<bool> CriteoCsvReader::NextLine(std::string_view* line) {
  const void* found = nullptr;
  while ((found = std::memchr(&buffer_[begin_], '\n', end_ - begin_)) ==
             nullptr &&
         !at_end_ && end_ - begin_ <= kMaxLineBytes) {
    REQUANT_RETURN_IF_ERROR(Fill());
  }
  if (begin_ == end_) return false;
  const char* const text = &buffer_[begin_];
  const size_t size =
      found ? static_cast<const char*>(found) - text : end_ - begin_;
  ++line_;
  too_long_ = size > kMaxLineBytes;
  if (too_long_) {
    *line = "";
    REQUANT_RETURN_IF_ERROR(SkipToLineEnd());
    return true;
  }
  begin_ += size + (found ? 1 : 0);
  bytes_ += size + (found ? 1 : 0);
  *line = absl::StripSuffix(std::string_view(text, size), "\r");
  return true;
}

}  // namespace requant
