#ifndef REQUANT_LOGS_PARSER_LOG_RECORD_H_
#define REQUANT_LOGS_PARSER_LOG_RECORD_H_

// The grammar of range records in one line of a log. TensorFlow's Print op, put
// into a graph by insert_logging, writes them to stderr:
//
//   ;<node>__print__;__requant_min_max:[<min>][<max>]
//   ;<node>__print__;__min:[<value>]
//   ;<node>__print__;__max:[<value>]
//
// A value is a number, nan or inf. Print writes a tensor of several values as
// [1 2] or [[1 2][3 4]] (up to rank 3 here): a min is then the smallest, a max
// the greatest of them. Anything may surround a record, other records too.

#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"

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

}  // namespace requant

#endif  // REQUANT_LOGS_PARSER_LOG_RECORD_H_
