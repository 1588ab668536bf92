#include "runtime/datasets/formats/csv_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace requant {
namespace {

// A longer record is taken for one whose quotes do not match.
constexpr size_t kMaxRecordBytes = 16 << 20;

enum class State { kFieldStart, kPlain, kQuoted, kAfterQuote };

State NextState(State state, char c, char delimiter) {
  if (state == State::kQuoted) {
    return c == '"' ? State::kAfterQuote : State::kQuoted;
  }
  if (c == delimiter) return State::kFieldStart;
  if (c == '"' && state != State::kPlain) return State::kQuoted;
  return State::kPlain;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CsvReader>> CsvReader::Open(
    const std::string& path, char delimiter) {
  REQUANT_ASSIGN_OR_RETURN(std::unique_ptr<InputFile> file,
                           InputFile::Open(path));
  std::unique_ptr<CsvReader> reader(new CsvReader(std::move(file)));
  REQUANT_RETURN_IF_ERROR(reader->Start(delimiter));
  return reader;
}

CsvReader::CsvReader(std::unique_ptr<InputFile> file)
    : file_(std::move(file)) {}

absl::Status CsvReader::Fill() {
  const size_t old_size = buffer_.size();
  buffer_.resize(old_size + kReadBytes);
  const absl::StatusOr<size_t> n =
      file_->Read(buffer_.data() + old_size, kReadBytes);
  buffer_.resize(old_size + (n.ok() ? *n : 0));
  at_end_ = n.ok() && *n == 0;
  return n.status();
}

absl::Status CsvReader::Start(char delimiter) {
  size_t line_end = std::string::npos;
  while (!at_end_ && line_end == std::string::npos &&
         buffer_.size() < kMaxRecordBytes) {
    // What is wrong with the content is Read's to tell.
    const absl::Status status = Fill();
    if (absl::IsDataLoss(status)) break;
    REQUANT_RETURN_IF_ERROR(status);
    line_end = buffer_.find('\n');
  }
  if (absl::StartsWith(buffer_, "\xef\xbb\xbf")) begin_ = 3;
  const std::string_view first_line =
      std::string_view(buffer_).substr(0, line_end);
  delimiter_ = delimiter != 0                        ? delimiter
               : absl::StrContains(first_line, '\t') ? '\t'
                                                     : ',';
  return absl::OkStatus();
}

void CsvReader::SkipFirstLine(std::string_view line) {
  const std::string_view rest = std::string_view(buffer_).substr(begin_);
  const size_t end = std::min(rest.find('\n'), rest.size());
  if (absl::StripSuffix(rest.substr(0, end), "\r") != line) return;
  begin_ += std::min(end + 1, rest.size());
  next_line_ = 2;
}

absl::StatusOr<size_t> CsvReader::FindEnd(int64_t* line_breaks) {
  State state = State::kFieldStart;
  for (size_t i = begin_;; ++i) {
    if (i == buffer_.size()) {
      if (!at_end_) {
        buffer_.erase(0, begin_);
        i -= begin_;
        begin_ = 0;
        REQUANT_RETURN_IF_ERROR(Fill());
      }
      if (i == buffer_.size()) break;
    }
    // Most records have no quotes, and then their end is the line's.
    if (i == begin_) {
      const std::string_view rest = std::string_view(buffer_).substr(i);
      const size_t line_end = rest.find('\n');
      if (line_end != std::string_view::npos &&
          !absl::StrContains(rest.substr(0, line_end), '"')) {
        return i + line_end;
      }
    }
    if (buffer_[i] == '\n') {
      if (state != State::kQuoted) return i;
      ++*line_breaks;
    }
    state = NextState(state, buffer_[i], delimiter_);
    if (i - begin_ > kMaxRecordBytes) {
      return absl::DataLossError(
          absl::StrCat("a record of more than ", kMaxRecordBytes >> 20,
                       " MB; a closing quote may be missing"));
    }
  }
  if (state == State::kQuoted) {
    return absl::DataLossError(
        "a field that starts with a quote does not end with one");
  }
  return buffer_.size();
}

absl::StatusOr<bool> CsvReader::Read(std::string_view* record) {
  for (;;) {
    line_ = next_line_;
    int64_t line_breaks = 1;
    REQUANT_ASSIGN_OR_RETURN(const size_t end, FindEnd(&line_breaks));
    if (end == begin_ && end == buffer_.size()) return false;
    *record = std::string_view(buffer_).substr(begin_, end - begin_);
    begin_ = std::min(end + 1, buffer_.size());
    next_line_ += line_breaks;
    if (absl::EndsWith(*record, "\r")) record->remove_suffix(1);
    if (!record->empty()) return true;
  }
}

bool SplitCsv(std::string_view record, char delimiter,
              std::vector<CsvField>* fields, std::string* storage) {
  fields->clear();
  storage->clear();
  // Fields point into it, so it must not move.
  storage->reserve(record.size());
  size_t at = 0;
  for (;;) {
    if (at == record.size() || record[at] != '"') {
      const size_t end = std::min(record.find(delimiter, at), record.size());
      fields->push_back({record.substr(at, end - at), false});
      at = end;
    } else {
      const size_t start = storage->size();
      for (++at; at < record.size(); ++at) {
        if (record[at] == '"') {
          if (at + 1 == record.size() || record[at + 1] != '"') break;
          ++at;
        }
        storage->push_back(record[at]);
      }
      if (at == record.size()) return false;
      ++at;
      if (at < record.size() && record[at] != delimiter) return false;
      fields->push_back({std::string_view(*storage).substr(start), true});
    }
    if (at == record.size()) return true;
    ++at;
  }
}

}  // namespace requant
