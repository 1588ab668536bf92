#ifndef REQUANT_LOGS_PARSER_LOG_PARSER_H_
#define REQUANT_LOGS_PARSER_LOG_PARSER_H_

// Logs -> RangeTable, in one pass and with memory for the ranges and a line
// only. log_record.h has the grammar of a line.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "logs_parser/log_record.h"
#include "ranges/range_table.h"

namespace requant {

// How many malformed records are kept with their reasons, over all files.
inline constexpr size_t kMostMalformedKept = 10;

struct LogParserOptions {
  // When set, only records of this kind enter the table.
  std::optional<RecordKind> only_kind;
  // Tests turn this off to check the fast way against the grammar.
  bool use_fast_way = true;
  // Into pieces of how many bytes ParseLogText cuts its text.
  size_t read_bytes = 256 << 10;
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
