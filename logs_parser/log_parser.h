#ifndef REQUANT_LOGS_PARSER_LOG_PARSER_H_
#define REQUANT_LOGS_PARSER_LOG_PARSER_H_

// Logs -> RangeTable, in one pass and with memory for the ranges and a line
// only.
//
// Records are what TensorFlow's Print op, put into a graph by insert_logging,
// writes to stderr:
//
//   ;<node>__print__;__requant_min_max:[<min>][<max>]
//   ;<node>__print__;__min:[<value>]
//   ;<node>__print__;__max:[<value>]
//
// A value is a number, nan or inf. Print writes a tensor of several values as
// [1 2] or [[1 2][3 4]] (up to rank 3 here): a min is then the smallest, a max
// the greatest of them. Anything may surround a record, other records too.

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
  // A kMin or kMax sets only its own value. Not finite when one of the tensor's
  // values was not.
  float min = 0;
  float max = 0;
};

// Calls `on_record` for every record in `line`, which has no line break, and
// `on_malformed` for every candidate that is none: text with a record's marker
// (__print__; and the message, or a message cut short) whose node or values do
// not parse. `reason` says what is wrong; `candidate` points into the line.
void FindRecords(
    std::string_view line,
    absl::FunctionRef<void(const LogRecord& record)> on_record,
    absl::FunctionRef<void(std::string reason, std::string_view candidate)>
        on_malformed);

// Returns whether `name` has only the characters of TensorFlow's node names.
bool IsNodeName(std::string_view name);

// Is the fast way for most lines: returns true when `line` ends with one record
// of finite scalars and has no other candidate, provided that
// IsNodeName(record->node), which callers check: they know most names already.
// On false nothing is known about the line, and FindRecords decides.
bool ParseSingleRecord(std::string_view line, LogRecord* record);

// How many malformed records are kept with their reasons, over all files.
inline constexpr size_t kMostMalformedKept = 10;

struct LogParserOptions {
  // When set, only records of this kind enter the table.
  std::optional<RecordKind> only_kind;
  // Tests turn this off to check the fast way against the grammar.
  bool use_fast_way = true;
  // Into pieces of how many bytes ParseLogText cuts its text.
  size_t read_bytes = 256 << 10;
  // A line that gets longer is parsed in parts, between records.
  size_t max_line_bytes = 16 << 20;
};

// Text that looks like a record and is none.
struct MalformedRecord {
  // "file:line".
  std::string place;
  std::string reason;
  // Its start, with every byte printable.
  std::string excerpt;
};

struct LogFileCounts {
  // The path as given; "stdin" for "-".
  std::string file;
  int64_t bytes = 0;
  // A last line without a line break counts.
  int64_t lines = 0;
  // Records that entered the table.
  int64_t records = 0;
  int64_t malformed = 0;
};

struct ParsedLogs {
  // The logs name nodes only, so every entry has output 0.
  RangeTable ranges;
  // In the order given.
  std::vector<LogFileCounts> files;
  std::vector<MalformedRecord> first_malformed;

  int64_t records() const;
  int64_t malformed() const;
};

// Parses files in this order; "-" is stdin. Errors name the path: missing, a
// directory, unreadable. A file without any record is none; see `records`.
absl::StatusOr<ParsedLogs> ParseLogFiles(const std::vector<std::string>& paths,
                                         const LogParserOptions& options = {});

// Parses a log in memory; `name` stands for the file.
ParsedLogs ParseLogText(std::string_view text, std::string_view name = "log",
                        const LogParserOptions& options = {});

// Returns "expected lines such as ...", for users whose log has no record.
std::string ExpectedRecords(std::optional<RecordKind> only_kind = {});

// Returns "log.txt:7: <reason>: <excerpt>".
std::string DescribeMalformed(const MalformedRecord& malformed);

}  // namespace requant

#endif  // REQUANT_LOGS_PARSER_LOG_PARSER_H_
