#ifndef REQUANT_BASE_JSON_H_
#define REQUANT_BASE_JSON_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace requant {

// Returns `text` with U+FFFD for every byte that is not part of UTF-8.
std::string ValidUtf8(std::string_view text);

// Returns `text` as a JSON string, in quotes. Control characters are escaped,
// and bytes that are not UTF-8, which JSON cannot hold, become U+FFFD.
std::string JsonString(std::string_view text);

// Returns the shortest text that reads back as `number`, or null for NaN and
// infinities, which JSON cannot hold.
std::string JsonNumber(double number);

// Returns an object on one line; `members` are pairs of a name and a JSON
// value.
std::string JsonObject(
    const std::vector<std::pair<std::string, std::string>>& members);

// Returns an array on one line; the values are JSON.
std::string JsonArray(const std::vector<std::string>& values);

// Returns an array of the results of `json` for each of `values`.
template <typename Values, typename Function>
std::string JsonArrayOf(const Values& values, const Function& json) {
  std::vector<std::string> all;
  for (const auto& value : values) all.push_back(json(value));
  return JsonArray(all);
}

// Returns JSON made by the functions above in readable form, with a line break
// at the end: objects and arrays that would make a line longer than 100 columns
// have a line for each member, indented by two spaces.
std::string IndentedJson(std::string_view json);

}  // namespace requant

#endif  // REQUANT_BASE_JSON_H_
