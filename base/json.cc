#include "base/json.h"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

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

constexpr size_t kMaxColumns = 100;

// The members of an object or array, without what separates them.
std::vector<std::string_view> MembersOf(std::string_view container) {
  std::vector<std::string_view> members;
  const size_t end = container.size() - 1;
  size_t start = 1;
  int depth = 0;
  bool quoted = false;
  for (size_t i = 1; i < end; ++i) {
    const char c = container[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ',' && depth == 0) {
      members.push_back(container.substr(start, i - start));
      start = i + 2;
    }
  }
  members.push_back(container.substr(start, end - start));
  return members;
}

// How long the name of an object's member is, with the colon behind it.
size_t NameLength(std::string_view member) {
  size_t i = 1;
  while (i < member.size() && member[i] != '"') i += member[i] == '\\' ? 2 : 1;
  return i + 3;
}

// `column` is where the value starts; `indent` that of its line.
void AppendIndented(std::string_view value, size_t indent, size_t column,
                    std::string* out) {
  const bool object = value.front() == '{';
  // A comma may follow.
  if ((!object && value.front() != '[') || value.size() == 2 ||
      column + value.size() < kMaxColumns) {
    absl::StrAppend(out, value);
    return;
  }
  const std::string break_line = "\n" + std::string(indent + 2, ' ');
  std::string_view separator;
  absl::StrAppend(out, value.substr(0, 1));
  for (const std::string_view member : MembersOf(value)) {
    const size_t name = object ? NameLength(member) : 0;
    absl::StrAppend(out, separator, break_line, member.substr(0, name));
    AppendIndented(member.substr(name), indent + 2, indent + 2 + name, out);
    separator = ",";
  }
  absl::StrAppend(out, "\n", std::string(indent, ' '), object ? "}" : "]");
}

}  // namespace

std::string ValidUtf8(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    absl::StrAppend(&valid,
                    length == 0 ? "\xef\xbf\xbd" : text.substr(0, length));
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return valid;
}

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

std::string JsonNumber(double number) {
  if (!std::isfinite(number)) return "null";
  char text[32];
  const std::to_chars_result end =
      std::to_chars(text, text + sizeof(text), number);
  return std::string(text, end.ptr);
}

std::string JsonObject(
    const std::vector<std::pair<std::string, std::string>>& members) {
  const auto format = [](std::string* out, const auto& member) {
    absl::StrAppend(out, JsonString(member.first), ": ", member.second);
  };
  return absl::StrCat("{", absl::StrJoin(members, ", ", format), "}");
}

std::string JsonArray(const std::vector<std::string>& values) {
  return absl::StrCat("[", absl::StrJoin(values, ", "), "]");
}

std::string IndentedJson(std::string_view json) {
  std::string out;
  AppendIndented(json, 0, 0, &out);
  return out + "\n";
}

}  // namespace requant
