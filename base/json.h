#ifndef REQUANT_BASE_JSON_H_
#define REQUANT_BASE_JSON_H_

#include <string>
#include <string_view>

namespace requant {

// `text` as a JSON string, in quotes. Control characters are escaped, and bytes
// that are not UTF-8, which JSON cannot hold, become U+FFFD.
std::string JsonString(std::string_view text);

}  // namespace requant

#endif  // REQUANT_BASE_JSON_H_
