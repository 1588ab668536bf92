#include "base/terminal/terminal_block.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/terminal/styled_text.h"

namespace requant {
namespace {

// To the beginning of the line that is so many rows above the cursor's.
std::string Up(int rows) {
  return rows == 0 ? "\r" : absl::StrCat("\r\x1b[", rows, "A");
}

}  // namespace

void TerminalBlock::Show(const std::vector<StyledLine>& above,
                         const std::vector<StyledLine>& block) {
  const int columns = std::max(1, environment_.columns());
  if (const int pauses = environment_.pauses ? environment_.pauses() : 0;
      pauses != pauses_) {
    pauses_ = pauses;
    widths_.clear();
    shown_.clear();
  }
  const int rows_up = RowsShown(columns);
  const bool resized = columns != columns_;
  columns_ = columns;
  widths_.clear();
  std::string text;
  for (const StyledLine& line : block) {
    // A character in the last column may move the cursor to the next line.
    const RenderedLine rendered = Render(line, columns - 1, color_);
    absl::StrAppend(&text, rendered.text, "\x1b[K\n");
    widths_.push_back(rendered.width);
  }
  if (text == shown_ && above.empty() && !resized) return;
  std::string frame = Up(rows_up);
  // Rows that a resized terminal has wrapped stay one line to it, and would be
  // joined when it grows again, unless they are erased. That is done row by row
  // because some terminals keep a copy of what is erased at once.
  const bool shrinks = static_cast<int>(block.size()) < rows_up;
  if (resized || shrinks || !above.empty()) {
    for (int i = 0; i < rows_up; ++i) absl::StrAppend(&frame, "\x1b[K\n");
    absl::StrAppend(&frame, Up(rows_up));
  }
  for (const StyledLine& line : above) {
    absl::StrAppend(&frame,
                    Render(line, std::numeric_limits<int>::max(), color_).text,
                    "\n");
  }
  environment_.write(absl::StrCat(frame, text, "\x1b[K"));
  shown_ = std::move(text);
}

int TerminalBlock::RowsShown(int columns) const {
  int rows = 0;
  for (int width : widths_) {
    rows += std::max(1, (width + columns - 1) / columns);
  }
  // What is above the screen cannot be reached.
  return std::min(rows, std::max(0, environment_.rows() - 1));
}

}  // namespace requant
