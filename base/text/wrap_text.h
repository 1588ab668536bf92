#ifndef REQUANT_BASE_TEXT_WRAP_TEXT_H_
#define REQUANT_BASE_TEXT_WRAP_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace requant {

// Appends `text` in lines of at most 80 columns, each after `indent` blanks.
// Words are kept whole.
void AppendWrapped(std::string_view text, size_t indent, std::string* out);

}  // namespace requant

#endif  // REQUANT_BASE_TEXT_WRAP_TEXT_H_
