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
#include "base/text/printable.h"

namespace requant {
namespace {

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

// Returns how long the name of an object's member is, with the colon after it.
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
