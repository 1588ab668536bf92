#ifndef REQUANT_BASE_TERMINAL_TERMINAL_BLOCK_H_
#define REQUANT_BASE_TERMINAL_TERMINAL_BLOCK_H_

// Lines at the bottom of a terminal that are rewritten in place, while others
// scroll up above them.

#include <string>
#include <string_view>
#include <vector>

#include "base/terminal/progress.h"
#include "base/terminal/styled_text.h"

namespace requant {

// The cursor rests on an empty line below the block: whatever ends the process
// leaves a terminal on which the shell can go on, and what the terminal itself
// writes there ("^C") is gone with the next frame. A frame is one write, and
// lines are overwritten rather than cleared, so that nothing flickers.
// After a pause the block starts anew below what the shell has written.
class TerminalBlock {
 public:
  TerminalBlock(const ProgressEnvironment& environment, bool color)
      : environment_(environment), color_(color) {}

  // Writes `above`, for good and in full, and under it `block` instead of the
  // block that was there. Lines of the block are cut to the terminal's width.
  // There must be more rows than lines in the block.
  void Show(const std::vector<StyledLine>& above,
            const std::vector<StyledLine>& block);

 private:
  // How many rows of the screen the block takes on a terminal of this width:
  // one that was narrowed has wrapped what was too long.
  int RowsShown(int columns) const;

  const ProgressEnvironment environment_;
  const bool color_;
  // The block's lines, and their widths.
  std::string shown_;
  // The terminal's width at the last frame.
  int columns_ = 0;
  std::vector<int> widths_;
  int pauses_ = 0;
};

}  // namespace requant

#endif  // REQUANT_BASE_TERMINAL_TERMINAL_BLOCK_H_
