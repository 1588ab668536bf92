#include "base/terminal/terminal_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/text/printable.h"

namespace requant {
namespace {

struct CodeRange {
  uint32_t first;
  uint32_t last;
};

// The Unicode blocks that terminals show two columns wide.
constexpr CodeRange kWide[] = {
    {0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},
    {0xa960, 0xa97f},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},
    {0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},
    {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1faff},
    {0x20000, 0x3fffd}};
// Marks that combine with the previous character, and invisible characters.
constexpr CodeRange kWithoutWidth[] = {
    {0x0300, 0x036f}, {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x2064},
    {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}};

template <size_t kSize>
bool IsIn(const CodeRange (&ranges)[kSize], uint32_t code) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [code](const CodeRange& range) {
                       return range.first <= code && code <= range.last;
                     });
}

int WidthOf(uint32_t code) {
  if (IsIn(kWithoutWidth, code)) return 0;
  return IsIn(kWide, code) ? 2 : 1;
}

std::string_view Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// Returns the sequence that turns a style on; kPlain needs none.
std::string_view Escape(Style style) {
  constexpr std::string_view kEscapes[] = {"",         "\x1b[2m",  "\x1b[32m",
                                           "\x1b[33m", "\x1b[31m", "\x1b[36m"};
  return kEscapes[static_cast<int>(style)];
}

constexpr int kTableGap = 2;

}  // namespace

int DisplayWidth(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    const Character character = FirstCharacter(text);
    width += WidthOf(character.code);
    text.remove_prefix(character.bytes);
  }
  return width;
}

std::string_view CutToWidth(std::string_view text, int width) {
  size_t end = 0;
  while (end < text.size()) {
    const Character character = FirstCharacter(text.substr(end));
    width -= WidthOf(character.code);
    if (width < 0) break;
    end += character.bytes;
  }
  return text.substr(0, end);
}

std::string Shortened(std::string_view text, int width,
                      std::string_view ellipsis) {
  if (DisplayWidth(text) <= width) return std::string(text);
  const int room = width - DisplayWidth(ellipsis);
  if (room < 0) return std::string(CutToWidth(text, width));
  return absl::StrCat(CutToWidth(text, room), ellipsis);
}

std::string PaddedRight(std::string_view text, int width) {
  return absl::StrCat(
      text, std::string(std::max(0, width - DisplayWidth(text)), ' '));
}

std::string PaddedLeft(std::string_view text, int width) {
  return absl::StrCat(std::string(std::max(0, width - DisplayWidth(text)), ' '),
                      text);
}

std::string PrintableLine(std::string_view text, bool utf8) {
  std::string line;
  while (!text.empty()) {
    const Character character = FirstCharacter(text);
    if (IsControl(character.code)) {
      line.push_back(' ');
    } else if (character.code == kStray || (character.code > 0x7f && !utf8)) {
      line.push_back('?');
    } else {
      absl::StrAppend(&line, text.substr(0, character.bytes));
    }
    text.remove_prefix(character.bytes);
  }
  return line;
}

bool LocaleIsUtf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string locale = absl::AsciiStrToLower(Variable(name));
    if (locale.empty()) continue;
    return absl::StrContains(locale, "utf-8") ||
           absl::StrContains(locale, "utf8");
  }
  return false;
}

bool ColorIsWelcome() {
  return Variable("NO_COLOR").empty() && Variable("TERM") != "dumb";
}

RenderedLine Render(const StyledLine& line, int width, bool color) {
  RenderedLine rendered;
  // Spaces are held back until some text follows them.
  int blanks = 0;
  for (const StyledText& part : line) {
    const std::string_view room = CutToWidth(part.text, width);
    const std::string_view visible = absl::StripTrailingAsciiWhitespace(room);
    width -= DisplayWidth(room);
    if (!visible.empty()) {
      rendered.text.append(blanks, ' ');
      rendered.width += blanks + DisplayWidth(visible);
      blanks = 0;
      absl::StrAppend(&rendered.text,
                      Styled(std::string(visible), part.style, color));
    }
    blanks += static_cast<int>(room.size() - visible.size());
    // Text after a truncated part must not move up to its place.
    if (room.size() < part.text.size()) break;
  }
  return rendered;
}

std::string Styled(const std::string& text, Style style, bool color) {
  const std::string_view escape = color ? Escape(style) : "";
  if (escape.empty()) return text;
  return absl::StrCat(escape, text, "\x1b[0m");
}

void Table::AddColumn(std::string title, int importance, bool left) {
  columns_.push_back({std::move(title), importance, left});
}

void Table::AddRow(std::vector<StyledText> cells) {
  for (size_t i = 0; i < cells.size(); ++i) {
    columns_[i].width =
        std::max(columns_[i].width, DisplayWidth(cells[i].text));
  }
  rows_.push_back(std::move(cells));
}

std::string Table::Text(int width, bool color) const {
  std::vector<Column> columns = columns_;
  int total = -kTableGap;
  // The visible columns that may be left out.
  std::vector<Column*> expendable;
  for (Column& column : columns) {
    if (column.width == 0) continue;
    column.width = std::max(column.width, DisplayWidth(column.title));
    total += column.width + kTableGap;
    if (column.importance < kAlways) expendable.push_back(&column);
  }
  std::sort(expendable.begin(), expendable.end(),
            [](const Column* a, const Column* b) {
              return a->importance < b->importance;
            });
  for (Column* column : expendable) {
    if (width == 0 || total <= width) break;
    total -= column->width + kTableGap;
    column->width = 0;
  }
  std::vector<StyledText> titles;
  for (const Column& column : columns) titles.push_back({column.title});
  std::string text;
  AppendRow(titles, columns, color, &text);
  for (const auto& row : rows_) AppendRow(row, columns, color, &text);
  return text;
}

void Table::AppendRow(const std::vector<StyledText>& cells,
                      const std::vector<Column>& columns, bool color,
                      std::string* text) const {
  StyledLine line;
  int width = 0;
  for (size_t i = 0; i < columns.size(); ++i) {
    const Column& column = columns[i];
    if (column.width == 0) continue;
    line.push_back({column.left ? PaddedRight(cells[i].text, column.width)
                                : PaddedLeft(cells[i].text, column.width),
                    cells[i].style});
    line.push_back({std::string(kTableGap, ' ')});
    width += column.width + kTableGap;
  }
  absl::StrAppend(text, Render(line, width, color).text, "\n");
}

}  // namespace requant
