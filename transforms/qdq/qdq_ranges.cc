#include "transforms/qdq/qdq_ranges.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace requant {
namespace {

std::string TensorOf(const RangeKey& key) {
  return absl::StrCat("\"", key.first, ":", key.second, "\"");
}

absl::Status CheckEntry(const RangeKey& key, const RangeEntry& entry) {
  if (entry.not_finite.count > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        TensorOf(key), " had values that are not finite, the first at ",
        entry.not_finite.first_place,
        "; calibrate again with records on which the model works"));
  }
  if (entry.inverted.count > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the minimum of ", TensorOf(key), " is above its maximum, first at ",
        entry.inverted.first_place));
  }
  return absl::OkStatus();
}

// From what was observed of the tensor.
absl::StatusOr<QdqRange> ChosenRange(const RangeKey& key,
                                     const RangeEntry& entry,
                                     const QdqRangeOptions& options) {
  REQUANT_RETURN_IF_ERROR(CheckEntry(key, entry));
  const auto named = [&](const absl::Status& status) {
    return absl::Status(status.code(),
                        absl::StrCat(TensorOf(key), ": ", status.message()));
  };
  if (options.format == QdqFormat::kQint8Scaled) {
    const auto magnitude = ChooseMagnitudeBy(options.choice, entry);
    if (!magnitude.ok()) return named(magnitude.status());
    return FitRange(options.format, {-*magnitude, *magnitude});
  }
  const auto choice = ChooseRangeBy(options.choice, entry);
  if (!choice.ok()) return named(choice.status());
  return FitRange(options.format,
                  {choice->min.value_or(0), choice->max.value_or(0)});
}

// Sites whose range is missing.
struct Missing {
  const QdqSite* first = nullptr;
  int count = 0;

  void Add(const QdqSite& site) {
    if (first == nullptr) first = &site;
    ++count;
  }

  // "\"f::x:0\", which node \"m\" of function \"f\" reads, and 3 others"
  std::string Describe() const {
    std::string text = absl::StrCat(TensorOf(first->range), ", which node \"",
                                    first->node, "\"");
    if (!first->function.empty()) {
      absl::StrAppend(&text, " of function \"", first->function, "\"");
    }
    absl::StrAppend(&text, " reads");
    if (count > 1) {
      absl::StrAppend(&text, ", and ", count - 1, " more input",
                      count > 2 ? "s" : "");
    }
    return text;
  }
};

}  // namespace

absl::StatusOr<std::vector<std::optional<QdqRange>>> RangesOfSites(
    const std::vector<QdqSite>& sites, const QdqRangeOptions& options,
    std::vector<std::string>* warnings) {
  const QdqRange fixed = FitRange(options.format, options.fixed);
  std::vector<std::optional<QdqRange>> ranges(sites.size(), fixed);
  if (options.table == nullptr) return ranges;
  absl::flat_hash_map<RangeKeyView, QdqRange> chosen;
  Missing missing, unreached;
  for (size_t i = 0; i < sites.size(); ++i) {
    const RangeKey& key = sites[i].range;
    ranges[i].reset();
    const RangeEntry* entry = options.table->Find(key.first, key.second);
    if (entry == nullptr) {
      (sites[i].reached ? missing : unreached).Add(sites[i]);
      continue;
    }
    const auto [known, is_new] = chosen.try_emplace(key);
    if (is_new) {
      REQUANT_ASSIGN_OR_RETURN(known->second,
                               ChosenRange(key, *entry, options));
    }
    ranges[i] = known->second;
  }
  if (missing.count > 0 && !options.skip_missing) {
    return absl::NotFoundError(
        absl::StrCat("the range table has no range for ", missing.Describe(),
                     "; calibrate this very graph, or leave them in float with "
                     "missing=skip"));
  }
  if (missing.count > 0) {
    warnings->push_back(absl::StrCat("left in float, for want of a range: ",
                                     missing.Describe()));
  }
  if (unreached.count > 0) {
    warnings->push_back(absl::StrCat(
        "left in float, being in functions that the graph does not call and "
        "without a range: ",
        unreached.Describe()));
  }
  return ranges;
}

}  // namespace requant
