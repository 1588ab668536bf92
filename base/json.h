#ifndef REQUANT_BASE_JSON_H_
#define REQUANT_BASE_JSON_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace requant {

// `text` as a JSON string, in quotes. Control characters are escaped, and bytes
// that are not UTF-8, which JSON cannot hold, become U+FFFD.
std::string JsonString(std::string_view text);

// The shortest text that reads back as `number`; null for NaN and infinities,
// which JSON cannot hold.
std::string JsonNumber(double number);

// An object on one line; `members` are pairs of a name and a value that is JSON
// already.
std::string JsonObject(
    const std::vector<std::pair<std::string, std::string>>& members);

// An array on one line, of values that are JSON already.
std::string JsonArray(const std::vector<std::string>& values);

}  // namespace requant

#endif  // REQUANT_BASE_JSON_H_
