#include "base/terminal/table.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/terminal/terminal_text.h"

namespace requant {
namespace {

constexpr int kTableGap = 2;

}  // namespace

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
  // The columns among those shown that may be left out.
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
