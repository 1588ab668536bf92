// parse_min_max_log: shows what a calibration run's logs say about each node.

#include <gflags/gflags.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/json.h"
#include "base/message_text.h"
#include "base/program/flags.h"
#include "base/status_macros.h"
#include "base/text/printable.h"
#include "logs_parser/log_parser.h"
#include "ranges/range_choice.h"
#include "ranges/range_table.h"

DEFINE_string(format, "table", "What to print: table, csv or json.");
DEFINE_bool(strict, false,
            "Fail when a record is malformed; nothing is written then.");
DEFINE_double(min_percentile, 5,
              "Percentile of a node's mins, counted from the lowest, that the "
              "freeze transforms take.");
DEFINE_double(max_percentile, 5,
              "Percentile of a node's maxs, counted from the highest, that the "
              "freeze transforms take.");
DEFINE_string(output, "",
              "Also write the ranges to this RangeTable file, for the freeze "
              "transforms' ranges_file.");
DEFINE_bool(allow_empty, false,
            "Take logs without any record, as of a graph that has nothing to "
            "log, for an empty table, with a warning.");

namespace requant {
namespace {

const char* const kProgram = ProgramName();

// What is shown of the values of a side; the last is the one that the freeze
// transforms take.
constexpr std::string_view kColumns[] = {"lowest", "p5",      "p50",
                                         "p95",    "highest", "frozen"};

// One side (min or max) of an entry.
struct Row {
  std::string name;
  std::string_view side;
  size_t count = 0;
  std::array<float, std::size(kColumns)> values;
};

// Returns "node", or "node:2" for an output other than 0.
std::string EntryName(const RangeKey& key) {
  return key.second == 0 ? key.first : absl::StrCat(key.first, ":", key.second);
}

std::vector<Row> EntryRows(const RangeKey& key, const RangeEntry& entry,
                           const Percentiles& percentiles) {
  std::vector<Row> rows;
  const auto add = [&](std::string_view side, const std::vector<float>& values,
                       const std::optional<float>& frozen) {
    if (!frozen.has_value()) return;
    const auto [lowest, highest] =
        std::minmax_element(values.begin(), values.end());
    rows.push_back(
        {EntryName(key),
         side,
         values.size(),
         {*lowest, LowerPercentile(values, 5), LowerPercentile(values, 50),
          UpperPercentile(values, 5), *highest, *frozen}});
  };
  const RangeChoice choice = ChooseRange(entry, percentiles);
  add("min", entry.mins, choice.min);
  add("max", entry.maxs, choice.max);
  return rows;
}

std::vector<Row> AllRows(const RangeTable& ranges,
                         const Percentiles& percentiles) {
  std::vector<Row> rows;
  for (const auto& [key, entry] : ranges.entries()) {
    for (Row& row : EntryRows(key, entry, percentiles)) {
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

void AddFaultWarning(const RangeKey& key, const RangeFault& fault,
                     std::string_view noun, std::string_view what,
                     std::vector<std::string>* warnings) {
  if (fault.count == 0) return;
  warnings->push_back(absl::StrCat(
      EntryName(key), ": ", CountText(fault.count, noun), what, ", first at ",
      fault.first_place, "; the freeze transforms refuse this node"));
}

// Keeps the field on one line; the terminal guard handles other controls.
std::string CsvField(std::string_view field) {
  const std::string text = absl::StrReplaceAll(field, {{"\n", "\\x0a"}});
  if (!absl::StrContains(text, ',') && !absl::StrContains(text, '"')) {
    return text;
  }
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

std::string JsonSide(const Row& row) {
  std::string text = absl::StrCat("{\"count\": ", row.count);
  for (size_t i = 0; i < row.values.size(); ++i) {
    absl::StrAppendFormat(&text, ", \"%s\": %.9g", kColumns[i], row.values[i]);
  }
  return text + "}";
}

std::string JsonFault(const RangeFault& fault) {
  return absl::StrCat("{\"count\": ", fault.count,
                      ", \"first\": ", JsonString(fault.first_place), "}");
}

std::string JsonEntry(const RangeKey& key, const RangeEntry& entry,
                      const Percentiles& percentiles) {
  std::string text =
      absl::StrCat("{\"node\": ", JsonString(key.first),
                   ", \"output\": ", key.second, ", \"count\": ", entry.count);
  for (const Row& row : EntryRows(key, entry, percentiles)) {
    absl::StrAppend(&text, ", \"", row.side, "\": ", JsonSide(row));
  }
  absl::StrAppend(&text, ", \"not_finite\": ", JsonFault(entry.not_finite),
                  ", \"inverted\": ", JsonFault(entry.inverted), "}");
  return text;
}

std::string JsonFile(const LogFileCounts& file) {
  return absl::StrCat("{\"file\": ", JsonString(file.file),
                      ", \"bytes\": ", file.bytes, ", \"lines\": ", file.lines,
                      ", \"records\": ", file.records,
                      ", \"malformed\": ", file.malformed, "}");
}

std::string JsonMalformed(const MalformedRecord& malformed) {
  return absl::StrCat("{\"place\": ", JsonString(malformed.place),
                      ", \"reason\": ", JsonString(malformed.reason),
                      ", \"excerpt\": ", JsonString(malformed.excerpt), "}");
}

template <typename Items, typename Format>
std::string JsonList(std::string_view name, const Items& items,
                     const Format& format) {
  std::string lines;
  for (const auto& item : items) {
    absl::StrAppend(&lines, lines.empty() ? "" : ",", "\n    ", format(item));
  }
  return absl::StrCat("  \"", name, "\": [", lines, lines.empty() ? "" : "\n  ",
                      "]");
}

std::string Summary(const ParsedLogs& logs) {
  int64_t observations = 0;
  for (const auto& [key, entry] : logs.ranges.entries()) {
    observations += entry.count;
  }
  return absl::StrCat(CountText(observations, "observation"), " of ",
                      CountText(logs.ranges.entries().size(), "node output"),
                      ", ", logs.malformed(), " malformed, from ",
                      CountText(logs.files.size(), "file"), "\n");
}

// Returns what in `logs` will cause trouble later, one sentence each: values
// that are not finite, inverted ranges, drift, too few
// observations, malformed records.
std::vector<std::string> RangeWarnings(const ParsedLogs& logs,
                                       const Percentiles& percentiles) {
  std::vector<std::string> warnings;
  for (const LogFileCounts& file : logs.files) {
    if (file.malformed == 0) continue;
    warnings.push_back(absl::StrCat(
        file.file, ": ", CountText(file.malformed, "malformed record"),
        " left out"));
  }
  for (const MalformedRecord& malformed : logs.first_malformed) {
    warnings.push_back(DescribeMalformed(malformed));
  }
  int64_t too_few = 0;
  for (const auto& [key, entry] : logs.ranges.entries()) {
    AddFaultWarning(key, entry.not_finite, "value", " not finite", &warnings);
    AddFaultWarning(key, entry.inverted, "range", " with min > max", &warnings);
    for (const std::string& drift : FindDrift(entry, percentiles)) {
      warnings.push_back(absl::StrCat(
          EntryName(key), ": ", drift,
          "; the log ends before the range has settled: log more batches"));
    }
    if (entry.count < kMinValuesForDrift) ++too_few;
  }
  if (too_few > 0) {
    warnings.push_back(absl::StrCat(
        too_few, " of ", CountText(logs.ranges.entries().size(), "node output"),
        " with fewer than ", kMinValuesForDrift,
        " observations: too few to tell whether a range has settled; log more "
        "batches"));
  }
  return warnings;
}

// Returns a row for each side (min, max) of every entry that has values: count,
// lowest, 5th, 50th and 95th percentile, highest, and the value that the freeze
// transforms take. Below the rows is a summary of what was read.
std::string RangesAsTable(const ParsedLogs& logs,
                          const Percentiles& percentiles) {
  std::string text = "   count";
  for (std::string_view column : kColumns) {
    absl::StrAppendFormat(&text, " %12s", column);
  }
  absl::StrAppend(&text, "  side node\n");
  for (const Row& row : AllRows(logs.ranges, percentiles)) {
    absl::StrAppendFormat(&text, "%8d", row.count);
    for (float value : row.values) {
      absl::StrAppendFormat(&text, " %12.6g", value);
    }
    absl::StrAppendFormat(&text, "  %-4s %s\n", row.side, Printable(row.name));
  }
  absl::StrAppendFormat(
      &text,
      "frozen: percentile %g from below for min, %g from above for max\n",
      percentiles.min, percentiles.max);
  return text + Summary(logs);
}

// Returns the same rows with a header line and exactly round-tripping numbers.
std::string RangesAsCsv(const ParsedLogs& logs,
                        const Percentiles& percentiles) {
  std::string text =
      absl::StrCat("node,side,count,", absl::StrJoin(kColumns, ","), "\n");
  for (const Row& row : AllRows(logs.ranges, percentiles)) {
    absl::StrAppend(&text, CsvField(row.name), ",", row.side, ",", row.count);
    for (float value : row.values) absl::StrAppendFormat(&text, ",%.9g", value);
    text += "\n";
  }
  return text;
}

// Returns an object with everything: entries, faults, files, malformed records
// and warnings.
std::string RangesAsJson(const ParsedLogs& logs,
                         const Percentiles& percentiles) {
  const auto entry_text = [&](const RangeTable::Entries::value_type& item) {
    return JsonEntry(item.first, item.second, percentiles);
  };
  return absl::StrFormat(
      "{\n  \"min_percentile\": %.9g,\n  \"max_percentile\": %.9g,\n"
      "%s,\n%s,\n%s,\n%s\n}\n",
      percentiles.min, percentiles.max,
      JsonList("entries", logs.ranges.entries(), entry_text),
      JsonList("files", logs.files, JsonFile),
      JsonList("malformed", logs.first_malformed, JsonMalformed),
      JsonList("warnings", RangeWarnings(logs, percentiles), JsonString));
}

ProgramHelp Help() {
  ProgramHelp help = {
      kProgram,
      "Reads the ranges that a graph with logging (insert_logging) "
      "printed, from logs with any text around them or from RangeTable "
      "files, and shows them by node. \"-\" is stdin.",
      "$0 run.log\n"
      "$0 --format=json --strict run1.log run2.log\n"
      "$0 --output=ranges.bin - < run.log",
      {__FILE__},
      "Records in a log, with any text around them:\n"
      "  ;<node>__print__;__requant_min_max:[<min>][<max>]\n"
      "  ;<node>__print__;__min:[<value>]\n"
      "  ;<node>__print__;__max:[<value>]"};
  help.aliases = {{"out", "output"}};
  return help;
}

// Looks only into regular files, because reading a pipe would consume it.
bool IsRangeTableFile(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  std::string head(32, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), head.size());
  return StartsLikeRangeTable(head);
}

absl::StatusOr<ParsedLogs> ParseOne(const std::string& path) {
  if (!IsRangeTableFile(path)) return ParseLogFiles({path});
  ParsedLogs table;
  REQUANT_ASSIGN_OR_RETURN(table.ranges, ReadRangeTable(path));
  table.files.push_back({path});
  return table;
}

void Append(ParsedLogs part, ParsedLogs* all) {
  all->files.insert(all->files.end(), part.files.begin(), part.files.end());
  for (MalformedRecord& malformed : part.first_malformed) {
    if (all->first_malformed.size() >= kMostMalformedKept) break;
    all->first_malformed.push_back(std::move(malformed));
  }
  if (all->ranges.empty()) {
    all->ranges = std::move(part.ranges);
  } else {
    all->ranges.Merge(part.ranges);
  }
}

absl::Status NothingFound(const ParsedLogs& logs) {
  std::vector<std::string> files;
  int64_t lines = 0;
  for (const LogFileCounts& file : logs.files) {
    files.push_back(file.file);
    lines += file.lines;
  }
  const std::string malformed =
      logs.malformed() == 0
          ? ""
          : absl::StrCat(", only ", logs.malformed(), " malformed (first ",
                         DescribeMalformed(logs.first_malformed[0]), ")");
  return absl::InvalidArgumentError(absl::StrCat(
      "no range record in the ", lines, " lines of ",
      absl::StrJoin(files, ", "), malformed, "; ", ExpectedRecords(),
      ": add them to the graph with insert_logging (show_name=true) and keep "
      "the run's stderr"));
}

// Returns what is wrong with the flags, or nullopt.
std::optional<std::string> UsageProblem(const std::vector<std::string>& paths) {
  if (paths.empty()) return "no log given (\"-\" reads stdin)";
  if (FLAGS_format != "table" && FLAGS_format != "csv" &&
      FLAGS_format != "json") {
    return absl::StrCat("--format is \"", FLAGS_format,
                        "\", expected table, csv or json");
  }
  for (const double percentile : {FLAGS_min_percentile, FLAGS_max_percentile}) {
    if (percentile >= 0 && percentile <= 100) continue;
    return absl::StrCat("a percentile is ", percentile, ", expected 0 to 100");
  }
  return std::nullopt;
}

absl::Status Run(const std::vector<std::string>& paths) {
  const Percentiles percentiles{static_cast<float>(FLAGS_min_percentile),
                                static_cast<float>(FLAGS_max_percentile)};
  ParsedLogs logs;
  for (const std::string& path : paths) {
    REQUANT_ASSIGN_OR_RETURN(ParsedLogs part, ParseOne(path));
    Append(std::move(part), &logs);
  }
  if (logs.ranges.empty()) {
    const absl::Status nothing = NothingFound(logs);
    if (!FLAGS_allow_empty) return nothing;
    Say(kProgram, absl::StrCat("warning: ", nothing.message()));
  }
  for (const std::string& warning : RangeWarnings(logs, percentiles)) {
    Say(kProgram, absl::StrCat("warning: ", warning));
  }
  if (FLAGS_strict && logs.malformed() > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--strict allows no malformed records, and there are ",
                     logs.malformed()));
  }
  const std::string report =
      FLAGS_format == "json"  ? RangesAsJson(logs, percentiles)
      : FLAGS_format == "csv" ? RangesAsCsv(logs, percentiles)
                              : RangesAsTable(logs, percentiles);
  if (!FLAGS_output.empty()) {
    REQUANT_RETURN_IF_ERROR(WriteRangeTable(logs.ranges, FLAGS_output));
  }
  std::fputs(report.c_str(), stdout);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  std::vector<std::string> paths;
  if (const auto exit_code = ParseFlags(argc, argv, Help(), &paths)) {
    return *exit_code;
  }
  if (const auto problem = UsageProblem(paths)) {
    return ReportUsage(kProgram, *problem);
  }
  const absl::Status status = Run(paths);
  return status.ok() ? kExitOk : ReportFailure(kProgram, status);
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  return requant::FinishOutput(requant::kProgram, requant::Main(argc, argv));
}
