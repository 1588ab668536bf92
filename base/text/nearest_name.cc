#include "base/text/nearest_name.h"

#include <algorithm>
#include <cstddef>

namespace requant {
namespace {

// Longer names are not compared: the cost is the product of the lengths.
constexpr size_t kLongestName = 256;

// Returns the Levenshtein distance, counting a swap of neighbors as one edit.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1),
      row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1,
                         last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    before_last.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::string NearestName(std::string_view name,
                        const std::vector<std::string>& candidates) {
  if (name.size() > kLongestName) return "";
  const std::string* nearest = nullptr;
  size_t best = std::max<size_t>(1, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestName) continue;
    // The lengths alone require this many edits.
    if (std::max(name.size(), candidate.size()) -
            std::min(name.size(), candidate.size()) >=
        best) {
      continue;
    }
    const size_t distance = EditDistance(name, candidate);
    if (distance < best) {
      best = distance;
      nearest = &candidate;
    }
  }
  return nearest == nullptr ? "" : *nearest;
}

std::string DidYouMean(std::string_view name,
                       const std::vector<std::string>& candidates) {
  const std::string nearest = NearestName(name, candidates);
  return nearest.empty() ? "" : " (did you mean \"" + nearest + "\"?)";
}

std::string SuggestName(std::string_view name,
                        const std::vector<std::string>& candidates) {
  const std::string nearest = NearestName(name, candidates);
  return nearest.empty() ? "" : "; did you mean \"" + nearest + "\"?";
}

}  // namespace requant
