#ifndef REQUANT_BASE_TERMINAL_STYLED_TEXT_H_
#define REQUANT_BASE_TERMINAL_STYLED_TEXT_H_

// Lines of a terminal with a little colour.

#include <string>
#include <vector>

namespace requant {

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

// `text` in that style, whatever its width.
std::string Styled(const std::string& text, Style style, bool color);

}  // namespace requant

#endif  // REQUANT_BASE_TERMINAL_STYLED_TEXT_H_
