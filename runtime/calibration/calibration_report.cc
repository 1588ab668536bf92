#include "runtime/calibration/calibration_report.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/message_text.h"
#include "base/status_macros.h"
#include "base/text/printable.h"

namespace requant {
namespace {

// The most names that a warning lists.
constexpr size_t kNamesShown = 3;

std::string EntryName(const RangeKey& key) {
  return Printable(absl::StrCat(key.first, ":", key.second));
}

std::string Number(const std::optional<float>& value) {
  return value.has_value() ? absl::StrFormat("%.6g", *value) : "-";
}

// Returns this many observations of the entry, in records if possible.
int64_t Amount(const RangeEntry& entry, int64_t observations,
               int64_t batch_size) {
  if (batch_size == 0) return observations;
  const int64_t records = observations * batch_size;
  return entry.records > 0 ? std::min(records, entry.records) : records;
}

std::string Summary(const RangeTable& table, int64_t batch_size) {
  int64_t most = 0, all = 0, moving = 0;
  for (const auto& [key, entry] : table.entries()) {
    const Settling settling = FindSettling(entry);
    most = std::max(most, Amount(entry, settling.observations, batch_size));
    all = std::max(all, Amount(entry, entry.count, batch_size));
    moving += settling.still_moving;
  }
  const std::string of =
      batch_size == 0 ? absl::StrCat(all, all == 1 ? " batch" : " batches")
                      : CountText(all, "record");
  std::string text = CountText(table.entries().size(), "range");
  if (moving > 0) {
    return absl::StrCat(text, ", of which ", moving,
                        " still moved at the end of ", of, "\n");
  }
  return absl::StrCat(text, ", within 1 % of the final width after ", most,
                      " of ", of, "\n");
}

std::string NameList(const std::vector<std::string>& names) {
  std::string list = absl::StrJoin(
      names.begin(), names.begin() + std::min(names.size(), kNamesShown), ", ");
  if (names.size() > kNamesShown) {
    absl::StrAppend(&list, " and ", names.size() - kNamesShown, " more");
  }
  return list;
}

}  // namespace

absl::StatusOr<std::string> CalibrationText(const RangeTable& table,
                                            const RangeChoiceOptions& choice,
                                            int64_t batch_size) {
  constexpr char kLine[] = "%12s %12s %12s %12s %9s  %s\n";
  std::string text = absl::StrFormat(
      "%12s %12s %25s %9s\n", "", "",
      absl::StrCat("by ", RangeMethodName(choice.method)), "settled");
  absl::StrAppendFormat(&text, kLine, "min", "max", "from", "to",
                        batch_size == 0 ? "batches" : "records", "tensor");
  for (const auto& [key, entry] : table.entries()) {
    RangeChoice range = ChooseRange(entry, choice.percentiles);
    if (entry.histogram.has_value()) {
      REQUANT_ASSIGN_OR_RETURN(range, ChooseRangeBy(choice, entry));
    }
    const RangeChoice all = ChooseRange(entry, {0, 0});
    const Settling settling = FindSettling(entry);
    const std::string settled =
        settling.still_moving
            ? "moving"
            : absl::StrCat(Amount(entry, settling.observations, batch_size));
    absl::StrAppendFormat(&text, kLine, Number(all.min), Number(all.max),
                          Number(range.min), Number(range.max), settled,
                          EntryName(key));
  }
  return text + Summary(table, batch_size);
}

std::vector<std::string> CalibrationWarnings(const RangeTable& table) {
  std::vector<std::string> warnings, moving;
  for (const auto& [key, entry] : table.entries()) {
    if (entry.not_finite.count > 0) {
      warnings.push_back(absl::StrCat(
          EntryName(key), ": ", CountText(entry.not_finite.count, "value"),
          " not finite, the first at ", entry.not_finite.first_place,
          "; the freeze transforms refuse this range"));
    }
    if (FindSettling(entry).still_moving) moving.push_back(EntryName(key));
  }
  if (!moving.empty()) {
    warnings.push_back(
        absl::StrCat(CountText(moving.size(), "range"),
                     " still moved by more than 1 % of the width at the end (",
                     NameList(moving), "): calibrate with more records"));
  }
  return warnings;
}

}  // namespace requant
