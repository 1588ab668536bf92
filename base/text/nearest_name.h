#ifndef REQUANT_BASE_TEXT_NEAREST_NAME_H_
#define REQUANT_BASE_TEXT_NEAREST_NAME_H_

#include <string>
#include <string_view>
#include <vector>

namespace requant {

// Returns the candidate that `name` is most likely a misspelling of (with the
// smallest edit distance, at most a third of its length; the first one on a
// tie), or "" if none is close.
std::string NearestName(std::string_view name,
                        const std::vector<std::string>& candidates);

// Returns " (did you mean \"x\"?)" for the nearest candidate, or "".
std::string DidYouMean(std::string_view name,
                       const std::vector<std::string>& candidates);

// Returns "; did you mean \"x\"?" for the nearest candidate, or "".
std::string SuggestName(std::string_view name,
                        const std::vector<std::string>& candidates);

}  // namespace requant

#endif  // REQUANT_BASE_TEXT_NEAREST_NAME_H_
