#include "logs_parser/range_report.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/json.h"
#include "base/text/printable.h"
#include "logs_parser/log_parser.h"
#include "ranges/range_choice.h"
#include "ranges/range_drift.h"
#include "ranges/range_table.h"

namespace requant {
namespace {

// One side (min or max) of one entry.
struct Row {
  std::string name;
  std::string_view side;
  int64_t count = 0;
  float lowest = 0;
  float p5 = 0;
  float p50 = 0;
  float p95 = 0;
  float highest = 0;
  float frozen = 0;
};

// "node", or "node:2" for another output than 0.
std::string EntryName(const RangeKey& key) {
  return key.second == 0 ? key.first : absl::StrCat(key.first, ":", key.second);
}

Row MakeRow(const RangeKey& key, std::string_view side,
            const std::vector<float>& values, float frozen) {
  const auto [lowest, highest] =
      std::minmax_element(values.begin(), values.end());
  return {EntryName(key),
          side,
          static_cast<int64_t>(values.size()),
          *lowest,
          LowerPercentile(values, 5),
          LowerPercentile(values, 50),
          UpperPercentile(values, 5),
          *highest,
          frozen};
}

std::vector<Row> EntryRows(const RangeKey& key, const RangeEntry& entry,
                           const Percentiles& percentiles) {
  const RangeChoice choice = ChooseRange(entry, percentiles);
  std::vector<Row> rows;
  if (choice.min.has_value()) {
    rows.push_back(MakeRow(key, "min", entry.mins, *choice.min));
  }
  if (choice.max.has_value()) {
    rows.push_back(MakeRow(key, "max", entry.maxs, *choice.max));
  }
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

std::string Plural(int64_t count, std::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

void AddFaultWarnings(const RangeKey& key, const RangeEntry& entry,
                      std::vector<std::string>* warnings) {
  if (entry.not_finite.count > 0) {
    warnings->push_back(absl::StrCat(
        EntryName(key), ": ", Plural(entry.not_finite.count, "value"),
        " not finite, first at ", entry.not_finite.first_place,
        "; the freeze transforms refuse this node"));
  }
  if (entry.inverted.count > 0) {
    warnings->push_back(absl::StrCat(
        EntryName(key), ": ", Plural(entry.inverted.count, "range"),
        " with min > max, first at ", entry.inverted.first_place,
        "; the freeze transforms refuse this node"));
  }
}

// In one line: the other control characters are the terminal guard's to find.
std::string CsvField(std::string_view field) {
  const std::string text = absl::StrReplaceAll(field, {{"\n", "\\x0a"}});
  if (!absl::StrContains(text, ',') && !absl::StrContains(text, '"')) {
    return text;
  }
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

std::string JsonSide(const Row& row) {
  return absl::StrFormat(
      "{\"count\": %d, \"lowest\": %.9g, \"p5\": %.9g, \"p50\": %.9g, "
      "\"p95\": %.9g, \"highest\": %.9g, \"frozen\": %.9g}",
      row.count, row.lowest, row.p5, row.p50, row.p95, row.highest, row.frozen);
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

std::string JsonList(std::string_view name,
                     const std::vector<std::string>& items) {
  return absl::StrCat("  \"", name, "\": [", items.empty() ? "" : "\n    ",
                      absl::StrJoin(items, ",\n    "),
                      items.empty() ? "" : "\n  ", "]");
}

template <typename Items, typename Format>
std::vector<std::string> Map(const Items& items, const Format& format) {
  std::vector<std::string> texts;
  for (const auto& item : items) texts.push_back(format(item));
  return texts;
}

std::string Summary(const ParsedLogs& logs) {
  int64_t observations = 0;
  for (const auto& [key, entry] : logs.ranges.entries()) {
    observations += entry.count;
  }
  return absl::StrCat(Plural(observations, "observation"), " of ",
                      Plural(logs.ranges.entries().size(), "node output"), ", ",
                      logs.malformed(), " malformed, from ",
                      Plural(logs.files.size(), "file"), "\n");
}

}  // namespace

std::vector<std::string> RangeWarnings(const ParsedLogs& logs,
                                       const Percentiles& percentiles) {
  std::vector<std::string> warnings;
  for (const LogFileCounts& file : logs.files) {
    if (file.malformed == 0) continue;
    warnings.push_back(absl::StrCat(file.file, ": ",
                                    Plural(file.malformed, "malformed record"),
                                    " left out"));
  }
  for (const MalformedRecord& malformed : logs.first_malformed) {
    warnings.push_back(DescribeMalformed(malformed));
  }
  int64_t too_few = 0;
  for (const auto& [key, entry] : logs.ranges.entries()) {
    AddFaultWarnings(key, entry, &warnings);
    for (const Drift& drift : FindDrift(entry, percentiles)) {
      warnings.push_back(absl::StrCat(
          EntryName(key), ": ", DescribeDrift(drift),
          "; the log ends before the range has settled: log more batches"));
    }
    if (entry.count < kMinValuesForDrift) ++too_few;
  }
  if (too_few > 0) {
    warnings.push_back(absl::StrCat(
        too_few, " of ", Plural(logs.ranges.entries().size(), "node output"),
        " with fewer than ", kMinValuesForDrift,
        " observations: too few to tell whether a range has settled; log more "
        "batches"));
  }
  return warnings;
}

std::string RangesAsTable(const ParsedLogs& logs,
                          const Percentiles& percentiles) {
  constexpr char kHeader[] = "%8s %12s %12s %12s %12s %12s %12s  %-4s %s\n";
  constexpr char kLine[] =
      "%8d %12.6g %12.6g %12.6g %12.6g %12.6g %12.6g  %-4s %s\n";
  std::string text =
      absl::StrFormat(kHeader, "count", "lowest", "p5", "p50", "p95", "highest",
                      "frozen", "side", "node");
  for (const Row& row : AllRows(logs.ranges, percentiles)) {
    absl::StrAppendFormat(&text, kLine, row.count, row.lowest, row.p5, row.p50,
                          row.p95, row.highest, row.frozen, row.side,
                          Printable(row.name));
  }
  absl::StrAppendFormat(&text,
                        "frozen: percentile %g from below for min, %g from "
                        "above for max\n",
                        percentiles.min, percentiles.max);
  return text + Summary(logs);
}

std::string RangesAsCsv(const ParsedLogs& logs,
                        const Percentiles& percentiles) {
  std::string text = "node,side,count,lowest,p5,p50,p95,highest,frozen\n";
  for (const Row& row : AllRows(logs.ranges, percentiles)) {
    absl::StrAppendFormat(&text, "%s,%s,%d,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g\n",
                          CsvField(row.name), row.side, row.count, row.lowest,
                          row.p5, row.p50, row.p95, row.highest, row.frozen);
  }
  return text;
}

std::string RangesAsJson(const ParsedLogs& logs,
                         const Percentiles& percentiles) {
  const auto entry_text = [&](const RangeTable::Entries::value_type& item) {
    return JsonEntry(item.first, item.second, percentiles);
  };
  return absl::StrFormat(
      "{\n  \"min_percentile\": %.9g,\n  \"max_percentile\": %.9g,\n"
      "%s,\n%s,\n%s,\n%s\n}\n",
      percentiles.min, percentiles.max,
      JsonList("entries", Map(logs.ranges.entries(), entry_text)),
      JsonList("files", Map(logs.files, JsonFile)),
      JsonList("malformed", Map(logs.first_malformed, JsonMalformed)),
      JsonList("warnings", Map(RangeWarnings(logs, percentiles), JsonString)));
}

}  // namespace requant
