#ifndef REQUANT_LOGS_PARSER_LOG_PARSER_H_
#define REQUANT_LOGS_PARSER_LOG_PARSER_H_

// Parses logs into a RangeTable in one pass, holding only the ranges and one
// line in memory.
//
// Records are what TensorFlow's Print op, inserted into a graph by
// insert_logging, writes to stderr:
//
//   ;<node>__print__;__requant_min_max:[<min>][<max>]
//   ;<node>__print__;__min:[<value>]
//   ;<node>__print__;__max:[<value>]
//
// A value is a number, nan or inf. Print writes a tensor of several values as
// [1 2] or [[1 2][3 4]] (up to rank 3 here); a min is then the smallest of them
// and a max the largest. Anything may surround a record, even other records.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "ranges/range_table.h"

namespace requant {

enum class RecordKind { kRequantMinMax, kMin, kMax };

struct LogRecord {
  RecordKind kind = RecordKind::kRequantMinMax;
  // Points into the line.
  std::string_view node;
  // A kMin or kMax sets only its own value. It is not finite if one of the
  // tensor's values was not.
  float min = 0;
  float max = 0;
};

// Calls `on_record` for every record in `line`, which has no line break, and
// `on_malformed` for every other candidate: text with a record's marker
// (__print__; and the message, or a message cut short) whose node or values do
// not parse. `reason` says what is wrong; `candidate` points into the line.
void FindRecords(
    std::string_view line,
    absl::FunctionRef<void(const LogRecord& record)> on_record,
    absl::FunctionRef<void(std::string reason, std::string_view candidate)>
        on_malformed);

// Returns whether `name` has only the characters of TensorFlow's node names.
bool IsNodeName(std::string_view name);

// Parses most lines quickly: returns true if `line` ends with one record of
// finite scalars and has no other candidate, provided that
// IsNodeName(record->node), which callers check because they know most names
// already. If it returns false, FindRecords must parse the line.
bool ParseSingleRecord(std::string_view line, LogRecord* record);

// At most this many malformed records of all files are kept with their reasons.
inline constexpr size_t kMostMalformedKept = 10;

struct LogParserOptions {
  // If set, only records of this kind enter the table.
  std::optional<RecordKind> only_kind;
  // Tests turn this off to compare the fast parser with the grammar.
  bool use_fast_way = true;
  // ParseLogText splits its text into pieces of this size.
  size_t read_bytes = 256 << 10;
  // A longer line is parsed in parts, split between records.
  size_t max_line_bytes = 16 << 20;
};

// Text that looks like a record but is malformed.
struct MalformedRecord {
  // The place as "file:line".
  std::string place;
  std::string reason;
  // The beginning of the text, with every byte printable.
  std::string excerpt;
};

struct LogFileCounts {
  // The path as given, or "stdin" for "-".
  std::string file;
  int64_t bytes = 0;
  // Includes a last line without a line break.
  int64_t lines = 0;
  // The number of records that entered the table.
  int64_t records = 0;
  int64_t malformed = 0;
};

struct ParsedLogs {
  // The logs name only nodes, so every entry has output 0.
  RangeTable ranges;
  // The counts in the order of the files given.
  std::vector<LogFileCounts> files;
  std::vector<MalformedRecord> first_malformed;

  int64_t records() const;
  int64_t malformed() const;
};

// Parses files in order; "-" is stdin. Errors name the path: it is missing, a
// directory, or unreadable. A lack of records is no error; see `records`.
absl::StatusOr<ParsedLogs> ParseLogFiles(const std::vector<std::string>& paths,
                                         const LogParserOptions& options = {});

// Parses a log in memory; `name` is used as the file's name.
ParsedLogs ParseLogText(std::string_view text, std::string_view name = "log",
                        const LogParserOptions& options = {});

// Returns "expected lines such as ...", for a log without records.
std::string ExpectedRecords(std::optional<RecordKind> only_kind = {});

// Returns "log.txt:7: <reason>: <excerpt>".
std::string DescribeMalformed(const MalformedRecord& malformed);

}  // namespace requant

#endif  // REQUANT_LOGS_PARSER_LOG_PARSER_H_
