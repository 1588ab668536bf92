#include "base/text/wrap_text.h"

#include <algorithm>

namespace requant {

void AppendWrapped(std::string_view text, size_t indent, std::string* out) {
  constexpr size_t kColumns = 80;
  size_t column = 0;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty()) break;
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    if (column == 0 || column + 1 + word.size() > kColumns) {
      if (column != 0) out->push_back('\n');
      out->append(indent, ' ');
      column = indent;
    } else {
      out->push_back(' ');
      ++column;
    }
    out->append(word);
    column += word.size();
  }
  out->push_back('\n');
}

}  // namespace requant
