#ifndef REQUANT_BASE_TERMINAL_TERMINAL_TEXT_H_
#define REQUANT_BASE_TERMINAL_TERMINAL_TEXT_H_

// Formats text for terminals, where a character is not a byte: display widths,
// a few colors, and tables.

#include <string>
#include <string_view>
#include <vector>

namespace requant {

// Returns how many columns the UTF-8 text takes: East Asian wide characters and
// emoji two, combining marks none, all others (even invalid bytes) one.
int DisplayWidth(std::string_view text);

// Returns the longest prefix that takes at most `width` columns without cutting
// a character.
std::string_view CutToWidth(std::string_view text, int width);

// Does the same as CutToWidth, but ends a truncated text with `ellipsis`.
std::string Shortened(std::string_view text, int width,
                      std::string_view ellipsis);

// Pads with spaces to `width` columns; wider text stays unchanged.
std::string PaddedRight(std::string_view text, int width);
std::string PaddedLeft(std::string_view text, int width);

// Returns the text as one line that cannot move the cursor or change colors:
// control characters become spaces, invalid UTF-8 becomes "?", and so does
// everything but ASCII if `utf8` is false.
std::string PrintableLine(std::string_view text, bool utf8);

// Returns whether the environment's locale (LC_ALL, LC_CTYPE, LANG) is UTF-8.
bool LocaleIsUtf8();

// Returns whether the environment allows colors on a terminal: NO_COLOR is
// unset or empty, and TERM is not "dumb".
bool ColorIsWelcome();

enum class Style { kPlain, kDim, kGood, kDoubtful, kBad, kBar };

struct StyledText {
  std::string text;
  Style style = Style::kPlain;
};

using StyledLine = std::vector<StyledText>;

// The first `width` columns of a line, without trailing spaces, and how many
// columns they take.
struct RenderedLine {
  std::string text;
  int width = 0;
};
RenderedLine Render(const StyledLine& line, int width, bool color);

// Returns `text` in that style, whatever its width.
std::string Styled(const std::string& text, Style style, bool color);

// A table for a terminal or a file.
class Table {
 public:
  // The importance of a column that is never left out.
  static constexpr int kAlways = 1000;

  // Adds a column after the others. Cells are right-aligned unless `left`.
  void AddColumn(std::string title, int importance, bool left = false);

  // Adds a row with one cell for each column.
  void AddRow(std::vector<StyledText> cells);

  struct Column {
    std::string title;
    int importance = 0;
    bool left = false;
    // The width of the widest cell.
    int width = 0;
  };
  const std::vector<Column>& columns() const { return columns_; }
  const std::vector<std::vector<StyledText>>& rows() const { return rows_; }

  // Returns the titles and the rows, a line each. Columns without any text are
  // left out, and so are the least important ones while the table is wider than
  // `width`; 0 means no limit. Cells are never truncated.
  std::string Text(int width, bool color) const;

 private:
  void AppendRow(const std::vector<StyledText>& cells,
                 const std::vector<Column>& columns, bool color,
                 std::string* text) const;

  std::vector<Column> columns_;
  std::vector<std::vector<StyledText>> rows_;
};

}  // namespace requant

#endif  // REQUANT_BASE_TERMINAL_TERMINAL_TEXT_H_
