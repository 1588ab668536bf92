#include "base/terminal_block.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/styled_text.h"

namespace requant {

void TerminalBlock::Show(const std::vector<StyledLine>& above,
                         const std::vector<StyledLine>& block) {
  const int columns = std::max(1, environment_.columns());
  const int rows_up = RowsShown(columns);
  const bool wrapped = rows_up != static_cast<int>(widths_.size());
  widths_.clear();
  std::string text;
  for (const StyledLine& line : block) {
    // A character in the last column may move the cursor to the next line.
    const RenderedLine rendered = Render(line, columns - 1, color_);
    absl::StrAppend(&text, rendered.text, "\x1b[K\n");
    widths_.push_back(rendered.width);
  }
  if (text == shown_ && above.empty() && !wrapped) return;
  std::string frame = "\r";
  if (rows_up > 0) absl::StrAppend(&frame, "\x1b[", rows_up, "A");
  if (!above.empty()) absl::StrAppend(&frame, "\x1b[J");
  for (const StyledLine& line : above) {
    absl::StrAppend(&frame,
                    Render(line, std::numeric_limits<int>::max(), color_).text,
                    "\n");
  }
  environment_.write(absl::StrCat(frame, text, "\x1b[J"));
  shown_ = std::move(text);
}

int TerminalBlock::RowsShown(int columns) const {
  int rows = 0;
  for (int width : widths_) {
    rows += std::max(1, (width + columns - 1) / columns);
  }
  return rows;
}

}  // namespace requant
