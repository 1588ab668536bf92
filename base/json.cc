#include "base/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/text/printable.h"

namespace requant {
namespace {

constexpr size_t kMaxColumns = 100;

// Returns the length of the value at the start of `text`.
size_t ValueLength(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '{' || c == '[')) {
      ++depth;
    } else if (!quoted && (c == '}' || c == ']' || c == ',' || c == ':')) {
      // The value ends at its container's next delimiter.
      if (depth == 0) return i;
      if (c == '}' || c == ']') --depth;
    }
  }
  return text.size();
}

// Appends a value that starts at `column` of a line indented by `indent`.
void AppendIndented(std::string_view value, size_t indent, size_t column,
                    std::string* out) {
  const bool object = value.front() == '{';
  // The line needs space for a comma after it.
  if ((!object && value.front() != '[') || value.size() == 2 ||
      column + value.size() < kMaxColumns) {
    absl::StrAppend(out, value);
    return;
  }
  std::string_view separator = value.substr(0, 1);
  std::string_view rest = value.substr(1, value.size() - 2);
  while (!rest.empty()) {
    // ": " follows a name and ", " follows a value.
    const size_t name = object ? ValueLength(rest) + 2 : 0;
    const size_t end = name + ValueLength(rest.substr(name));
    absl::StrAppend(out, separator, "\n", std::string(indent + 2, ' '),
                    rest.substr(0, name));
    AppendIndented(rest.substr(name, end - name), indent + 2, indent + 2 + name,
                   out);
    separator = ",";
    rest.remove_prefix(std::min(end + 2, rest.size()));
  }
  absl::StrAppend(out, "\n", std::string(indent, ' '), object ? "}" : "]");
}

}  // namespace

std::string ValidUtf8(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const Character character = FirstCharacter(text);
    absl::StrAppend(&valid, character.code == kStray
                                ? "\xef\xbf\xbd"
                                : text.substr(0, character.bytes));
    text.remove_prefix(character.bytes);
  }
  return valid;
}

std::string JsonString(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const Character character = FirstCharacter(text);
    if (text[0] == '"' || text[0] == '\\') {
      quoted += {'\\', text[0]};
    } else if (IsControl(character.code)) {
      absl::StrAppendFormat(&quoted, "\\u%04x", character.code);
    } else if (character.code == kStray) {
      quoted += "\\ufffd";
    } else {
      absl::StrAppend(&quoted, text.substr(0, character.bytes));
    }
    text.remove_prefix(character.bytes);
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
