#include "base/text/shell_quote.h"

#include <algorithm>

namespace requant {
namespace {

bool IsSafe(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
         (c >= 'a' && c <= 'z') ||
         std::string_view("_-+./:,=@%").find(c) != std::string_view::npos;
}

}  // namespace

std::string ShellQuoted(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), IsSafe)) return std::string(text);
  std::string quoted = "'";
  for (char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace requant
