#include "base/program/last_words.h"

#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace requant {

bool IsTensorFlowNoise(std::string_view line) {
  for (std::string_view known :
       {"All log messages before absl::InitializeLog()",
        "oneDNN custom operations are on",
        "This TensorFlow binary is optimized to use available CPU",
        "To enable the following instructions",
        "contains invalid UTF-8 data when parsing a protocol buffer"}) {
    if (absl::StrContains(line, known)) return true;
  }
  return false;
}

bool IsLastWord(std::string_view line, std::string* reason) {
  const size_t check = line.find("Check failed: ");
  const bool fatal =
      absl::StartsWith(line, "F") && absl::StrContains(line, "] ");
  if (check != std::string_view::npos) {
    line.remove_prefix(check);
  } else if (fatal) {
    line.remove_prefix(line.find("] ") + 2);
  } else if (!absl::StartsWith(line, "terminate called")) {
    return false;
  }
  // Protobuf's mark before a message that is printed, and that message's first
  // line, say nothing useful.
  line = line.substr(0, line.find(" in goo.gle/debug"));
  *reason = std::string(absl::StripAsciiWhitespace(line));
  return true;
}

}  // namespace requant
