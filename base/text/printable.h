#ifndef REQUANT_BASE_TEXT_PRINTABLE_H_
#define REQUANT_BASE_TEXT_PRINTABLE_H_

// Makes text safe for a terminal or a shell: names and other people's texts
// must not control it or break or forge a line.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace requant {

struct Character {
  size_t bytes = 1;
  // kStray for a byte that is not valid UTF-8.
  uint32_t code = 0;
};

inline constexpr uint32_t kStray = 0xffffffff;

// Returns the first character of a nonempty text.
Character FirstCharacter(std::string_view text);

// Appends the character with this code, or U+FFFD if there is none.
void AppendUtf8(uint32_t code, std::string* text);

// Returns whether a terminal may obey the character instead of showing it: the
// control characters of ASCII and of Unicode's C1 block, and those that break
// lines or change the direction of writing.
bool IsControl(uint32_t code);

// Returns a name or a sentence with all such characters, and all bytes that are
// not UTF-8, written as "\xNN". A word of more than 300 bytes, and a text of
// more than 4,000, is shortened to its ends and a note on how much is missing.
// Text that is already printable is unchanged.
std::string Printable(std::string_view text);

// Does the same for text of many lines, but keeps line breaks and tabs and does
// not shorten anything.
std::string PrintableLines(std::string_view text);

// Returns the value of a flag for pasting into a shell: the text itself if that
// is safe, else in single quotes.
std::string ShellQuoted(std::string_view text);

// Appends `text` in lines of at most 80 columns, each indented by `indent`
// spaces, without breaking words.
void AppendWrapped(std::string_view text, size_t indent, std::string* out);

}  // namespace requant

#endif  // REQUANT_BASE_TEXT_PRINTABLE_H_
