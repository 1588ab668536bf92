#include "logs_parser/log_parser.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace requant {
namespace {

constexpr size_t kMaxExcerptBytes = 100;

// Fills `data` with up to `size` bytes and returns how many; 0 at the end.
using ReadFunction =
    absl::FunctionRef<absl::StatusOr<size_t>(char* data, size_t size)>;

// Returns how much of a line that is longer than the buffer can be parsed by
// itself. A ';' that starts a record separates: no record reaches across it.
// The ';' inside a record comes after __print__. Without a separator all of it
// is taken, and a record of more than max_line_bytes comes out malformed.
size_t PartEnd(std::string_view part) {
  for (size_t end = part.rfind(';'); end != std::string_view::npos && end > 0;
       end = part.rfind(';', end - 1)) {
    if (!absl::EndsWith(part.substr(0, end), "__print__")) return end;
  }
  return part.size();
}

// Parses one log after the other into the same ParsedLogs.
class LogParser {
 public:
  explicit LogParser(const LogParserOptions& options) : options_(options) {}

  absl::Status Parse(std::string_view name, ReadFunction read) {
    result_.files.push_back({std::string(name)});
    line_number_ = 1;
    EscapeStripper stripper;
    std::vector<char> buffer(options_.max_line_bytes + options_.read_bytes);
    size_t used = 0;
    bool in_line = false;
    while (true) {
      char* const fresh = buffer.data() + used;
      REQUANT_ASSIGN_OR_RETURN(const size_t size,
                               read(fresh, options_.read_bytes));
      if (size == 0) break;
      counts().bytes += size;
      in_line = fresh[size - 1] != '\n';
      used += stripper.Strip(fresh, size);
      const size_t parsed = ParseBuffer({buffer.data(), used});
      used -= parsed;
      std::memmove(buffer.data(), buffer.data() + parsed, used);
    }
    ParseLine({buffer.data(), used});
    counts().lines = line_number_ - 1 + (in_line ? 1 : 0);
    return absl::OkStatus();
  }

  ParsedLogs TakeResult() { return std::move(result_); }

 private:
  LogFileCounts& counts() { return result_.files.back(); }

  // Parses whole lines and, of a line that gets too long, a part; returns how
  // many bytes it parsed. Less than max_line_bytes are left.
  size_t ParseBuffer(std::string_view text) {
    const size_t size = text.size();
    const size_t line_break = text.rfind('\n');
    if (line_break != std::string_view::npos) {
      ParseLines(text.substr(0, line_break + 1));
      text.remove_prefix(line_break + 1);
    }
    while (text.size() >= options_.max_line_bytes) {
      const size_t end = PartEnd(text);
      ParseLine(text.substr(0, end));
      text.remove_prefix(end);
    }
    return size - text.size();
  }

  // `lines` is whole lines, each with its line break.
  void ParseLines(std::string_view lines) {
    while (!lines.empty()) {
      const size_t end = lines.find('\n');
      ParseLine(lines.substr(0, end));
      ++line_number_;
      lines.remove_prefix(end + 1);
    }
  }

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
    if (static_cast<int>(result_.first_malformed.size()) >=
        options_.max_malformed_kept) {
      return;
    }
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
};

absl::Status ParseDescriptor(int fd, const std::string& name,
                             LogParser* parser) {
  return parser->Parse(
      name, [&](char* data, size_t size) -> absl::StatusOr<size_t> {
        while (true) {
          const ssize_t n = read(fd, data, size);
          if (n >= 0) return static_cast<size_t>(n);
          if (errno == EINTR) continue;
          return absl::FailedPreconditionError(
              absl::StrCat("cannot read ", name, ": ", std::strerror(errno)));
        }
      });
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

constexpr unsigned char kEscapeByte = 0x1b;
constexpr unsigned char kBell = 0x07;

bool Between(unsigned char byte, unsigned char low, unsigned char high) {
  return low <= byte && byte <= high;
}

}  // namespace

EscapeStripper::State EscapeStripper::Next(State state, unsigned char byte,
                                           bool* keep) {
  *keep = false;
  if (byte == '\n' || state == State::kText) {
    *keep = byte == '\n' || byte != kEscapeByte;
    return *keep ? State::kText : State::kEscape;
  }
  if (byte == kEscapeByte) {
    return state == State::kString || state == State::kStringEscape
               ? State::kStringEscape
               : State::kEscape;
  }
  switch (state) {
    case State::kEscape:
      if (byte == '[') return State::kControl;
      if (std::strchr("]PX^_", byte) != nullptr && byte != 0) {
        return State::kString;
      }
      [[fallthrough]];
    case State::kIntermediate:
      if (Between(byte, 0x20, 0x2f)) return State::kIntermediate;
      *keep = !Between(byte, 0x30, 0x7e);
      return State::kText;
    case State::kControl:
      if (Between(byte, 0x20, 0x3f)) return State::kControl;
      *keep = !Between(byte, 0x40, 0x7e);
      return State::kText;
    case State::kString:
      return byte == kBell ? State::kText : State::kString;
    case State::kStringEscape:
      return byte == '\\' ? State::kText : State::kString;
    case State::kText:
      break;
  }
  return State::kText;
}

size_t EscapeStripper::Strip(char* data, size_t size) {
  size_t in = 0, out = 0;
  while (in < size) {
    if (state_ == State::kText) {
      const void* escape = std::memchr(data + in, kEscapeByte, size - in);
      const size_t text = escape == nullptr
                              ? size - in
                              : static_cast<const char*>(escape) - (data + in);
      if (out != in) std::memmove(data + out, data + in, text);
      in += text;
      out += text;
      if (in == size) break;
    }
    bool keep = false;
    state_ = Next(state_, static_cast<unsigned char>(data[in]), &keep);
    if (keep) data[out++] = data[in];
    ++in;
  }
  return out;
}

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
  // Reading from memory does not fail.
  parser
      .Parse(name,
             [&](char* data, size_t size) -> absl::StatusOr<size_t> {
               const size_t n = text.copy(data, size);
               text.remove_prefix(n);
               return n;
             })
      .IgnoreError();
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
