#ifndef REQUANT_BASE_TEXT_PRINTABLE_H_
#define REQUANT_BASE_TEXT_PRINTABLE_H_

// Words for a terminal or a shell: names and other people's words must neither
// command it nor break or forge a line.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace requant {

struct Character {
  size_t bytes = 1;
  // kStray for a byte that is not UTF-8.
  uint32_t code = 0;
};

inline constexpr uint32_t kStray = 0xffffffff;

// Returns the first character of a text that is not empty.
Character FirstCharacter(std::string_view text);

// Appends the character of that code; U+FFFD for what is none.
void AppendUtf8(uint32_t code, std::string* text);

// Returns whether a terminal may obey the character instead of showing it: the
// control characters of ASCII and of Unicode's second block, and those that
// break lines or turn the direction of writing.
bool IsControl(uint32_t code);

// Returns a name or a sentence with all such characters, and all that is not
// UTF-8, written as "\xNN". A word of more than 300 bytes, and a text of more
// than 4,000, is cut in the middle, and says how much is missing there. What is
// printable already stays as it is.
std::string Printable(std::string_view text);

// Returns text of many lines with such characters replaced in the same way,
// except for line breaks and tabs; nothing is cut.
std::string PrintableLines(std::string_view text);

// Returns the value of a flag, for a command line to paste into a shell: the
// text itself where that is safe, else in single quotes.
std::string ShellQuoted(std::string_view text);

// Appends `text` in lines of at most 80 columns, each after `indent` blanks.
// Words are kept whole.
void AppendWrapped(std::string_view text, size_t indent, std::string* out);

}  // namespace requant

#endif  // REQUANT_BASE_TEXT_PRINTABLE_H_
