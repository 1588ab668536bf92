#ifndef REQUANT_BASE_TEXT_SHELL_QUOTE_H_
#define REQUANT_BASE_TEXT_SHELL_QUOTE_H_

#include <string>
#include <string_view>

namespace requant {

// Returns the value of a flag, for a command line to paste into a shell: the
// text itself where that is safe, else in single quotes.
std::string ShellQuoted(std::string_view text);

}  // namespace requant

#endif  // REQUANT_BASE_TEXT_SHELL_QUOTE_H_
