// parse_min_max_log: what the logs of a calibration run say about each node.

#include <gflags/gflags.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/program/flags.h"
#include "base/status_macros.h"
#include "logs_parser/log_parser.h"
#include "logs_parser/range_report.h"
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

ProgramHelp Help() {
  return {
      kProgram,
      "Reads the ranges that a graph with logging (insert_logging) printed, "
      "from logs with any text around them or from RangeTable files, and "
      "shows them by node. \"-\" is stdin.",
      "$0 run.log\n"
      "$0 --format=json --strict run1.log run2.log\n"
      "$0 --output=ranges.bin - < run.log",
      {__FILE__},
      "Records in a log, with any text around them:\n"
      "  ;<node>__print__;__requant_min_max:[<min>][<max>]\n"
      "  ;<node>__print__;__min:[<value>]\n"
      "  ;<node>__print__;__max:[<value>]"};
}

// Only regular files are looked into: what is read from a pipe is gone.
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
  LogFileCounts counts;
  counts.file = path;
  table.files.push_back(std::move(counts));
  return table;
}

void Append(ParsedLogs part, ParsedLogs* all) {
  const size_t kept = LogParserOptions().max_malformed_kept;
  all->files.insert(all->files.end(), part.files.begin(), part.files.end());
  for (MalformedRecord& malformed : part.first_malformed) {
    if (all->first_malformed.size() >= kept) break;
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

// A wrong use of the flags, or nothing.
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
