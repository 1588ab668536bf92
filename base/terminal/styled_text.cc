#include "base/terminal/styled_text.h"

#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/terminal/terminal_text.h"

namespace requant {
namespace {

std::string_view Escape(Style style) {
  switch (style) {
    case Style::kDim:
      return "\x1b[2m";
    case Style::kGood:
      return "\x1b[32m";
    case Style::kDoubtful:
      return "\x1b[33m";
    case Style::kBad:
      return "\x1b[31m";
    case Style::kBar:
      return "\x1b[36m";
    case Style::kPlain:
      break;
  }
  return "";
}

}  // namespace

RenderedLine Render(const StyledLine& line, int width, bool color) {
  RenderedLine rendered;
  // Blanks wait for something that they stand before.
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
    // What follows something that was cut does not move up to its place.
    if (room.size() < part.text.size()) break;
  }
  return rendered;
}

std::string Styled(const std::string& text, Style style, bool color) {
  const std::string_view escape = color ? Escape(style) : "";
  if (escape.empty()) return text;
  return absl::StrCat(escape, text, "\x1b[0m");
}

}  // namespace requant
