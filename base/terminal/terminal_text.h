#ifndef REQUANT_BASE_TERMINAL_TERMINAL_TEXT_H_
#define REQUANT_BASE_TERMINAL_TERMINAL_TEXT_H_

// Text in the columns of a terminal, where a character is not a byte, with a
// little colour, and in tables.

#include <string>
#include <string_view>
#include <vector>

namespace requant {

// Returns how many columns the UTF-8 text takes: East Asian wide characters and
// emoji two, combining marks none, all others, stray bytes too, one.
int DisplayWidth(std::string_view text);

// Returns the longest beginning that takes at most `width` columns. No
// character is cut in two.
std::string_view CutToWidth(std::string_view text, int width);

// Does the same as CutToWidth, but a text that was cut ends with `ellipsis`.
std::string Shortened(std::string_view text, int width,
                      std::string_view ellipsis);

// Adds blanks up to `width` columns; what is wider stays as it is.
std::string PaddedRight(std::string_view text, int width);
std::string PaddedLeft(std::string_view text, int width);

// Returns the text as one line that cannot move the cursor or change colours:
// control characters become blanks, what is not UTF-8 becomes "?", and without
// `utf8` so does all that is not ASCII.
std::string PrintableLine(std::string_view text, bool utf8);

// Returns whether the environment's locale (LC_ALL, LC_CTYPE, LANG) is UTF-8.
bool LocaleIsUtf8();

// Returns whether the environment allows colours on a terminal: NO_COLOR is
// unset or empty, and TERM is not "dumb".
bool ColorIsWelcome();

enum class Style { kPlain, kDim, kGood, kDoubtful, kBad, kBar };

struct StyledText {
  std::string text;
  Style style = Style::kPlain;
};

using StyledLine = std::vector<StyledText>;

// The first `width` columns of the line, without blanks at the end, and how
// many columns that takes.
struct RenderedLine {
  std::string text;
  int width = 0;
};
RenderedLine Render(const StyledLine& line, int width, bool color);

// Returns `text` in that style, whatever its width.
std::string Styled(const std::string& text, Style style, bool color);

// Cells in columns, for a terminal or a file.
class Table {
 public:
  // The importance of a column that is never left out.
  static constexpr int kAlways = 1000;

  // Adds a column after the others. Cells stand to the right unless `left`.
  void AddColumn(std::string title, int importance, bool left = false);

  // Adds a line of as many cells as there are columns.
  void AddRow(std::vector<StyledText> cells);

  // Returns the titles and the rows, a line each. Columns without any text are
  // left out, and so are the least important ones as long as the table is wider
  // than `width`; 0: there is no such limit. No cell is ever cut.
  std::string Text(int width, bool color) const;

 private:
  struct Column {
    std::string title;
    int importance = 0;
    bool left = false;
    // That of the widest cell.
    int width = 0;
  };

  void AppendRow(const std::vector<StyledText>& cells,
                 const std::vector<Column>& columns, bool color,
                 std::string* text) const;

  std::vector<Column> columns_;
  std::vector<std::vector<StyledText>> rows_;
};

}  // namespace requant

#endif  // REQUANT_BASE_TERMINAL_TERMINAL_TEXT_H_
