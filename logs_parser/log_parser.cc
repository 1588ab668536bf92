#include "logs_parser/log_parser.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace requant {
namespace {

constexpr size_t kMaxExcerptBytes = 100;

// Parses one log after the other into the same ParsedLogs.
class LogParser {
 public:
  explicit LogParser(const LogParserOptions& options) : options_(options) {}

  void StartLog(std::string_view name) {
    result_.files.push_back({std::string(name)});
    line_number_ = 1;
  }

  // Parses what comes next in the log, which may start and end within a line.
  void Add(std::string_view text) {
    counts().bytes += text.size();
    for (size_t end; (end = text.find('\n')) != std::string_view::npos;
         text.remove_prefix(end + 1)) {
      if (line_.empty()) {
        ParseLine(text.substr(0, end));
      } else {
        ParseLine(line_.append(text.substr(0, end)));
        line_.clear();
      }
      ++line_number_;
    }
    line_.append(text);
  }

  void EndLog() {
    ParseLine(line_);
    counts().lines = line_number_ - (line_.empty() ? 1 : 0);
    line_.clear();
  }

  ParsedLogs TakeResult() { return std::move(result_); }

 private:
  LogFileCounts& counts() { return result_.files.back(); }

  void ParseLine(std::string_view line) {
    LogRecord record;
    if (options_.use_fast_way && ParseSingleRecord(line, &record)) {
      const auto known = entries_.find(record.node);
      if (known != entries_.end()) return AddRecord(record, known->second);
      if (IsNodeName(record.node)) return AddRecord(record, nullptr);
    }
    FindRecords(
        line, [this](const LogRecord& found) { AddRecord(found, nullptr); },
        [this](std::string reason, std::string_view candidate) {
          AddMalformed(std::move(reason), candidate);
        });
  }

  // `entry` is the node's, or null when it is not known.
  void AddRecord(const LogRecord& record, RangeEntry* entry) {
    if (options_.only_kind.value_or(record.kind) != record.kind) return;
    ++counts().records;
    if (entry == nullptr) entry = EntryOf(record.node);
    const Place place{counts().file, line_number_};
    switch (record.kind) {
      case RecordKind::kRequantMinMax:
        entry->AddRange(record.min, record.max, place);
        break;
      case RecordKind::kMin:
        entry->AddMin(record.min, place);
        break;
      case RecordKind::kMax:
        entry->AddMax(record.max, place);
        break;
    }
  }

  void AddMalformed(std::string reason, std::string_view candidate) {
    ++counts().malformed;
    if (result_.first_malformed.size() >= kMostMalformedKept) return;
    const bool cut = candidate.size() > kMaxExcerptBytes;
    result_.first_malformed.push_back(
        {absl::StrCat(counts().file, ":", line_number_), std::move(reason),
         absl::StrCat(absl::CHexEscape(candidate.substr(0, kMaxExcerptBytes)),
                      cut ? " ..." : "")});
  }

  RangeEntry* EntryOf(std::string_view node) {
    const auto found = entries_.find(node);
    if (found != entries_.end()) return found->second;
    RangeEntry* const entry = &result_.ranges.FindOrAdd(node);
    entries_.emplace(node, entry);
    return entry;
  }

  const LogParserOptions options_;
  ParsedLogs result_;
  // The entries of result_.ranges, which keep their addresses.
  absl::flat_hash_map<std::string, RangeEntry*> entries_;
  int64_t line_number_ = 1;
  // The beginning of a line whose end was not read yet.
  std::string line_;
};

absl::Status ParseDescriptor(int fd, const std::string& name,
                             LogParser* parser) {
  constexpr size_t kReadBytes = 256 << 10;
  std::vector<char> buffer(kReadBytes);
  parser->StartLog(name);
  while (const ssize_t size = read(fd, buffer.data(), buffer.size())) {
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot read ", name, ": ", std::strerror(errno)));
    }
    parser->Add({buffer.data(), static_cast<size_t>(size)});
  }
  parser->EndLog();
  return absl::OkStatus();
}

absl::Status ParseFile(const std::string& path, LogParser* parser) {
  if (path == "-") return ParseDescriptor(STDIN_FILENO, "stdin", parser);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const std::string message =
        absl::StrCat("cannot open the log ", path, ": ", std::strerror(errno));
    return errno == ENOENT ? absl::NotFoundError(message)
                           : absl::FailedPreconditionError(message);
  }
  absl::Cleanup close_fd = [fd] { close(fd); };
  return ParseDescriptor(fd, path, parser);
}

int64_t Sum(const std::vector<LogFileCounts>& files,
            int64_t LogFileCounts::*count) {
  int64_t sum = 0;
  for (const LogFileCounts& file : files) sum += file.*count;
  return sum;
}

}  // namespace

int64_t ParsedLogs::records() const {
  return Sum(files, &LogFileCounts::records);
}

int64_t ParsedLogs::malformed() const {
  return Sum(files, &LogFileCounts::malformed);
}

absl::StatusOr<ParsedLogs> ParseLogFiles(const std::vector<std::string>& paths,
                                         const LogParserOptions& options) {
  LogParser parser(options);
  for (const std::string& path : paths) {
    REQUANT_RETURN_IF_ERROR(ParseFile(path, &parser));
  }
  return parser.TakeResult();
}

ParsedLogs ParseLogText(std::string_view text, std::string_view name,
                        const LogParserOptions& options) {
  LogParser parser(options);
  parser.StartLog(name);
  for (; !text.empty();
       text.remove_prefix(std::min(text.size(), options.read_bytes))) {
    parser.Add(text.substr(0, options.read_bytes));
  }
  parser.EndLog();
  return parser.TakeResult();
}

std::string ExpectedRecords(std::optional<RecordKind> only_kind) {
  // In the order of RecordKind.
  constexpr std::string_view kLines[] = {
      ";<node>__print__;__requant_min_max:[<min>][<max>]",
      ";<node>__print__;__min:[<value>]", ";<node>__print__;__max:[<value>]"};
  return absl::StrCat("expected lines such as ",
                      only_kind.has_value()
                          ? std::string(kLines[static_cast<int>(*only_kind)])
                          : absl::StrJoin(kLines, " or "));
}

std::string DescribeMalformed(const MalformedRecord& malformed) {
  return absl::StrCat(malformed.place, ": ", malformed.reason, ": ",
                      malformed.excerpt);
}

}  // namespace requant
