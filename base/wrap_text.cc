#include "base/wrap_text.h"

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace requant {

void AppendWrapped(std::string_view text, size_t indent, std::string* out) {
  constexpr size_t kColumns = 80;
  size_t column = 0;
  for (std::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (column == 0 || column + 1 + word.size() > kColumns) {
      if (column != 0) out->push_back('\n');
      out->append(indent, ' ');
      column = indent;
    } else {
      out->push_back(' ');
      ++column;
    }
    absl::StrAppend(out, word);
    column += word.size();
  }
  out->push_back('\n');
}

}  // namespace requant
