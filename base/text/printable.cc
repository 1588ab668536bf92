#include "base/text/printable.h"

#include <algorithm>

// Programs without absl use this file too.

namespace requant {
namespace {

constexpr size_t kLongestWord = 300;
constexpr size_t kLongestText = 4000;

bool Continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

// Escapes all control characters but those in `kept`.
std::string Escaped(std::string_view text, std::string_view kept) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string escaped;
  escaped.reserve(text.size());
  while (!text.empty()) {
    const Character character = FirstCharacter(text);
    const std::string_view bytes = text.substr(0, character.bytes);
    text.remove_prefix(character.bytes);
    const bool shown = character.code != kStray && !IsControl(character.code);
    if (shown || kept.find(bytes) != std::string_view::npos) {
      escaped.append(bytes);
      continue;
    }
    for (const unsigned char byte : bytes) {
      escaped.append({'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]});
    }
  }
  return escaped;
}

// Returns valid UTF-8 with at most `most` bytes.
std::string CutInTheMiddle(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  constexpr size_t kRoomForMark = 40;
  size_t head = (most - kRoomForMark) / 2;
  size_t tail = text.size() - head;
  while (head > 0 && Continues(text[head])) --head;
  while (tail < text.size() && Continues(text[tail])) ++tail;
  std::string cut(text.substr(0, head));
  cut += "[... " + std::to_string(tail - head) + " bytes ...]";
  return cut.append(text.substr(tail));
}

// Returns whether the character has no special meaning to a shell.
bool IsPlain(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
         (c >= 'a' && c <= 'z') ||
         std::string_view("_-+./:,=@%").find(c) != std::string_view::npos;
}

}  // namespace

Character FirstCharacter(std::string_view text) {
  const unsigned char first = text[0];
  if (first < 0x80) return {1, first};
  const size_t bytes = first >= 0xf0   ? 4
                       : first >= 0xe0 ? 3
                       : first >= 0xc2 ? 2
                                       : 0;
  if (bytes == 0 || first > 0xf4 || text.size() < bytes) return {1, kStray};
  uint32_t code = first & (0x7f >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if (!Continues(text[i])) return {1, kStray};
    code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kLeast[bytes] || code > 0x10ffff || surrogate) return {1, kStray};
  return {bytes, code};
}

void AppendUtf8(uint32_t code, std::string* text) {
  if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) code = 0xfffd;
  if (code < 0x80) {
    text->push_back(static_cast<char>(code));
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr unsigned char kFirst[] = {0, 0xc0, 0xe0, 0xf0};
  text->push_back(static_cast<char>(kFirst[more] | code >> (6 * more)));
  for (int i = more - 1; i >= 0; --i) {
    text->push_back(static_cast<char>(0x80 | (code >> (6 * i) & 0x3f)));
  }
}

bool IsControl(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x061c ||
         code == 0x200e || code == 0x200f ||
         (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

std::string Printable(std::string_view text) {
  const std::string escaped = Escaped(text, "");
  std::string_view rest = escaped;
  std::string printable;
  while (true) {
    const size_t blank = rest.find(' ');
    printable += CutInTheMiddle(rest.substr(0, blank), kLongestWord);
    if (blank == std::string_view::npos) break;
    printable += ' ';
    rest.remove_prefix(blank + 1);
  }
  return CutInTheMiddle(printable, kLongestText);
}

std::string PrintableLines(std::string_view text) {
  return Escaped(text, "\n\t");
}

std::string ShellQuoted(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), IsPlain)) return std::string(text);
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
