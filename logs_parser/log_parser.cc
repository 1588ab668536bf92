#include "logs_parser/log_parser.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "re2/re2.h"

namespace requant {
namespace {

constexpr std::string_view kPrintSuffix = "__print__";
constexpr std::string_view kMarker = "__print__;";

struct Message {
  std::string_view text;
  RecordKind kind;
};
constexpr std::array<Message, 3> kMessages = {
    {{"__requant_min_max:", RecordKind::kRequantMinMax},
     {"__min:", RecordKind::kMin},
     {"__max:", RecordKind::kMax}}};

constexpr char kNode[] = R"([A-Za-z0-9_.][A-Za-z0-9_./\\>-]*)";
constexpr char kNumber[] =
    R"([+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    R"(|(?i:nan|inf|infinity)))";

// Returns the pattern of a tensor of rank 0 to 3 as printed by Print.
std::string TensorPattern() {
  const std::string row = absl::StrCat(" *", kNumber, "(?: +", kNumber, ")* *");
  const std::string rows = absl::StrCat(R"((?:\[)", row, R"(\])+)");
  const std::string blocks = absl::StrCat(R"((?:\[)", rows, R"(\])+)");
  return absl::StrCat(R"((\[(?:)", row, "|", rows, "|", blocks, R"()\]))");
}

struct Grammar {
  // Latin1 is used because a log may hold any bytes and the grammar is ASCII.
  RE2 node{kNode, RE2::Latin1};
  RE2 tensor{TensorPattern(), RE2::Latin1};
  // Captures the node, a range's two tensors, and those of a min and a max.
  RE2 record{absl::StrCat(";(", kNode,
                          ")__print__;__(?:requant_min_max:", TensorPattern(),
                          TensorPattern(), "|min:", TensorPattern(),
                          "|max:", TensorPattern(), ")"),
             RE2::Latin1};
};

const Grammar& TheGrammar() {
  static const Grammar* const grammar = new Grammar;
  return *grammar;
}

// Returns the first number that is not finite, or else the best one by
// `better`, in a text that matches TensorPattern().
float Reduce(std::string_view tensor,
             absl::FunctionRef<bool(float a, float b)> better) {
  std::optional<float> best;
  for (std::string_view number :
       absl::StrSplit(tensor, absl::ByAnyChar("[] "), absl::SkipEmpty())) {
    float value = std::numeric_limits<float>::quiet_NaN();
    // The grammar accepts only numbers; one too large for a float becomes
    // infinite.
    if (!absl::SimpleAtof(number, &value) || !std::isfinite(value)) {
      return value;
    }
    if (!best.has_value() || better(value, *best)) best = value;
  }
  return best.value_or(std::numeric_limits<float>::quiet_NaN());
}

// Removes a record from the start of `text`; returns false if none is there.
bool ConsumeRecord(std::string_view* text, LogRecord* record) {
  std::string_view range_min, range_max, min, max;
  if (!RE2::Consume(text, TheGrammar().record, &record->node, &range_min,
                    &range_max, &min, &max)) {
    return false;
  }
  if (!range_min.empty()) {
    record->kind = RecordKind::kRequantMinMax;
    record->min = Reduce(range_min, std::less<float>());
    record->max = Reduce(range_max, std::greater<float>());
  } else if (!min.empty()) {
    record->kind = RecordKind::kMin;
    record->min = Reduce(min, std::less<float>());
  } else {
    record->kind = RecordKind::kMax;
    record->max = Reduce(max, std::greater<float>());
  }
  return true;
}

// Returns why `values`, the text after the message, does not fit it.
std::string ValuesProblem(const Message& message, std::string_view values) {
  const bool two = message.kind == RecordKind::kRequantMinMax;
  const std::string expected = absl::StrCat(
      "expected ", message.text, two ? "[<min>][<max>]" : "[<value>]");
  if (absl::StrContains(values, "...")) {
    return absl::StrCat(
        expected,
        ", found values left out (\"...\"): log with a larger summarize");
  }
  const auto brackets = std::count(values.begin(), values.end(), ']');
  if (brackets < (two ? 2 : 1)) {
    return absl::StrCat(expected, ", found a record cut short");
  }
  return expected;
}

struct Candidate {
  // The text from the ';' before the node to the next ';' after the message, or
  // to the end of the line.
  std::string_view text;
  // Parts of `text`: from after the ';' to the marker, and after the message.
  std::string_view node;
  std::string_view values;
  bool starts_with_semicolon = false;
  // Null if the message is cut short.
  const Message* message = nullptr;
};

// Returns the candidate whose marker is at `marker`, or nullopt if it is not
// followed by one of our messages.
std::optional<Candidate> CandidateAt(std::string_view line, size_t marker) {
  std::string_view tail = line.substr(marker + kMarker.size());
  tail = tail.substr(0, tail.find(';'));
  const std::string_view trimmed = absl::StripTrailingAsciiWhitespace(tail);
  Candidate candidate;
  bool cut_short = false;
  for (const Message& message : kMessages) {
    if (absl::StartsWith(tail, message.text)) candidate.message = &message;
    cut_short |= absl::StartsWith(message.text, trimmed);
  }
  if (candidate.message == nullptr && !cut_short) return std::nullopt;
  const size_t semicolon = line.substr(0, marker).rfind(';');
  candidate.starts_with_semicolon = semicolon != std::string_view::npos;
  const size_t begin = candidate.starts_with_semicolon ? semicolon : 0;
  const size_t node = candidate.starts_with_semicolon ? begin + 1 : 0;
  const size_t end = marker + kMarker.size() + tail.size();
  candidate.text = line.substr(begin, end - begin);
  candidate.node = line.substr(node, marker - node);
  if (candidate.message != nullptr) {
    candidate.values = tail.substr(candidate.message->text.size());
  }
  return candidate;
}

// Parses `candidate` into `record`, or returns the reason for failure.
std::optional<std::string> ParseCandidate(const Candidate& candidate,
                                          LogRecord* record) {
  if (!candidate.starts_with_semicolon) return "no ';' before the node's name";
  if (!IsNodeName(candidate.node)) {
    return "the text between ';' and __print__ is not a node's name";
  }
  if (candidate.message == nullptr) return "the record is cut short";
  std::string_view rest = candidate.text;
  if (!ConsumeRecord(&rest, record)) {
    return ValuesProblem(*candidate.message, candidate.values);
  }
  // Other text that starts with a bracket may follow, but not another tensor.
  if (RE2::Consume(&rest, TheGrammar().tensor)) {
    return absl::StrCat("more values than ", candidate.message->text, " has");
  }
  return std::nullopt;
}

// Parses a number with at most 15 digits and no exponent, followed by ']', and
// returns its end. Its digits as an integer and the power of ten are both exact
// doubles, so that their quotient is the double nearest to the number. The
// float nearest to that is also the float nearest to the number, unless that
// double lies exactly between two floats. Returns null if any of this does not
// hold.
const char* ReadShortNumber(const char* text, const char* end, float* value) {
  static constexpr double kPowersOfTen[] = {1e0,  1e1,  1e2,  1e3, 1e4,  1e5,
                                            1e6,  1e7,  1e8,  1e9, 1e10, 1e11,
                                            1e12, 1e13, 1e14, 1e15};
  constexpr int kMaxDigits = 15;
  uint64_t whole = 0;
  int digits = 0;
  const char* point = nullptr;
  for (; text < end; ++text) {
    if (absl::ascii_isdigit(*text)) {
      if (digits++ == kMaxDigits) return nullptr;
      whole = whole * 10 + (*text - '0');
    } else if (*text == '.' && point == nullptr) {
      point = text;
    } else {
      break;
    }
  }
  if (digits == 0 || text == end || *text != ']') return nullptr;
  const size_t fraction = point == nullptr ? 0 : text - point - 1;
  const double quotient = static_cast<double>(whole) / kPowersOfTen[fraction];
  uint64_t bits;
  std::memcpy(&bits, &quotient, sizeof(bits));
  // A double has 29 more bits than a float.
  if ((bits & 0x1fffffff) == 0x10000000) return nullptr;
  *value = static_cast<float>(quotient);
  return text;
}

// Parses "[<finite number>]" at the start of `text` and removes it.
bool ConsumeScalar(std::string_view* text, float* value) {
  const char* const end = text->data() + text->size();
  const char* begin = text->data() + 1;
  if (text->size() < 3 || text->front() != '[') return false;
  const bool negative = *begin == '-';
  if (negative) ++begin;
  if (!absl::ascii_isdigit(*begin)) return false;
  const char* rest = ReadShortNumber(begin, end, value);
  if (rest == nullptr) {
    const std::from_chars_result result = std::from_chars(begin, end, *value);
    if (result.ec != std::errc() || !std::isfinite(*value)) return false;
    rest = result.ptr;
  }
  if (rest == end || *rest != ']') return false;
  if (negative) *value = -*value;
  text->remove_prefix(rest + 1 - text->data());
  return true;
}

std::string_view RestAfterLast(char separator, std::string_view text) {
  const void* found = memrchr(text.data(), separator, text.size());
  if (found == nullptr) return {};
  return text.substr(static_cast<const char*>(found) + 1 - text.data());
}

constexpr size_t kMaxExcerptBytes = 100;

// Returns the length of the start of a line that can be parsed by itself: all
// before the ';' of its last record, or everything if it has none. The ';'
// inside a record follows __print__.
size_t PartEnd(std::string_view line) {
  for (size_t end = line.rfind(';'); end != std::string_view::npos && end > 0;
       end = line.rfind(';', end - 1)) {
    if (!absl::EndsWith(line.substr(0, end), kPrintSuffix)) return end;
  }
  return line.size();
}

// Parses one log after another into the same ParsedLogs.
class LogParser {
 public:
  explicit LogParser(const LogParserOptions& options) : options_(options) {}

  void StartLog(std::string_view name) {
    result_.files.push_back({std::string(name)});
    line_number_ = 1;
    in_line_ = false;
  }

  // Parses the next bytes of the log, which may start and end within a line.
  void Add(std::string_view text) {
    counts().bytes += text.size();
    in_line_ = text.back() != '\n';
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
    if (line_.size() < options_.max_line_bytes) return;
    const size_t end = PartEnd(line_);
    ParseLine(std::string_view(line_).substr(0, end));
    line_.erase(0, end);
  }

  void EndLog() {
    ParseLine(line_);
    counts().lines = line_number_ - (in_line_ ? 0 : 1);
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

  // `entry` is the node's, or null if it is unknown.
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
  // The entries of result_.ranges, whose addresses are stable.
  absl::flat_hash_map<std::string, RangeEntry*> entries_;
  int64_t line_number_ = 1;
  // Whether the last byte was part of a line.
  bool in_line_ = false;
  // The start of a line whose end has not been read yet.
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

void FindRecords(
    std::string_view line,
    absl::FunctionRef<void(const LogRecord& record)> on_record,
    absl::FunctionRef<void(std::string reason, std::string_view candidate)>
        on_malformed) {
  for (size_t from = 0;;) {
    const size_t marker = line.find(kMarker, from);
    if (marker == std::string_view::npos) return;
    from = marker + kMarker.size();
    const std::optional<Candidate> candidate = CandidateAt(line, marker);
    if (!candidate.has_value()) continue;
    LogRecord record;
    std::optional<std::string> problem = ParseCandidate(*candidate, &record);
    if (problem.has_value()) {
      on_malformed(*std::move(problem), candidate->text);
    } else {
      on_record(record);
    }
  }
}

bool IsNodeName(std::string_view name) {
  return RE2::FullMatch(name, TheGrammar().node);
}

bool ParseSingleRecord(std::string_view line, LogRecord* record) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (line.empty() || line.back() != ']') return false;
  std::string_view values = RestAfterLast(';', line);
  if (values.empty()) return false;
  std::string_view head = line.substr(0, values.data() - 1 - line.data());
  const auto message = std::find_if(
      kMessages.begin(), kMessages.end(), [&](const Message& candidate) {
        return absl::StartsWith(values, candidate.text);
      });
  if (message == kMessages.end() || !absl::EndsWith(head, kPrintSuffix)) {
    return false;
  }
  head.remove_suffix(kPrintSuffix.size());
  record->kind = message->kind;
  record->node = RestAfterLast(';', head);
  if (record->node.empty()) return false;
  const std::string_view before =
      head.substr(0, record->node.data() - 1 - head.data());
  if (absl::StrContains(before, kPrintSuffix)) return false;
  values.remove_prefix(message->text.size());
  const bool has_min = message->kind != RecordKind::kMax;
  const bool has_max = message->kind != RecordKind::kMin;
  if (has_min && !ConsumeScalar(&values, &record->min)) return false;
  if (has_max && !ConsumeScalar(&values, &record->max)) return false;
  return values.empty();
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
  parser.StartLog(name);
  for (; !text.empty();
       text.remove_prefix(std::min(text.size(), options.read_bytes))) {
    parser.Add(text.substr(0, options.read_bytes));
  }
  parser.EndLog();
  return parser.TakeResult();
}

std::string ExpectedRecords(std::optional<RecordKind> only_kind) {
  // Indexed by RecordKind.
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
