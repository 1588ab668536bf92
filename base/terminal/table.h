#ifndef REQUANT_BASE_TERMINAL_TABLE_H_
#define REQUANT_BASE_TERMINAL_TABLE_H_

#include <string>
#include <vector>

#include "base/terminal/terminal_text.h"

namespace requant {

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

#endif  // REQUANT_BASE_TERMINAL_TABLE_H_
