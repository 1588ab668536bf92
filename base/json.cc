#include "base/json.h"

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace requant {
namespace {

// The length of the UTF-8 character at the start of `text`, or 0 when there is
// none: stray and missing continuation bytes, overlong forms, surrogates, and
// what lies beyond U+10FFFF.
size_t CharacterLength(std::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong =
      (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool beyond =
      (first == 0xed && byte(1) >= 0xa0) || (first == 0xf4 && byte(1) >= 0x90);
  return overlong || beyond ? 0 : length;
}

}  // namespace

std::string JsonString(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const unsigned char c = text[0];
    const size_t length = CharacterLength(text);
    if (c == '"' || c == '\\') {
      quoted += {'\\', text[0]};
    } else if (c < 0x20 || c == 0x7f) {
      absl::StrAppendFormat(&quoted, "\\u%04x", c);
    } else if (length == 0) {
      quoted += "\\ufffd";
    } else {
      absl::StrAppend(&quoted, text.substr(0, length));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return quoted + "\"";
}

}  // namespace requant
