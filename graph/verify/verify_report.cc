#include "graph/verify/verify_report.h"

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/text/printable.h"
#include "tensorflow/core/framework/op_def.pb.h"

namespace requant {
namespace {

constexpr size_t kLongestReason = 240;

// At most `length` bytes of `text`, without a torn UTF-8 character at the end.
std::string_view Prefix(std::string_view text, size_t length) {
  if (text.size() <= length) return text;
  while (length > 0 && (text[length] & 0xC0) == 0x80) --length;
  return text.substr(0, length);
}

}  // namespace

std::string Quoted(std::string_view text) {
  return absl::StrCat("\"", Printable(text), "\"");
}

std::string ShortReason(std::string_view message) {
  message = message.substr(0, message.find('\n'));
  // A description of the whole node follows this.
  message = message.substr(0, message.find("; NodeDef: "));
  const std::string_view shown = Prefix(message, kLongestReason);
  std::string text = Printable(shown);
  if (shown.size() < message.size()) {
    text += "...";
  } else if (!text.empty() && text.back() == '.') {
    text.pop_back();
  }
  return text;
}

std::string NodePlace::Path() const {
  return function == nullptr ? node.name()
                             : absl::StrCat(function->name(), "/", node.name());
}

std::string NodePlace::Describe() const {
  const std::string text = absl::StrCat("node ", Quoted(node.name()), " (",
                                        Printable(node.op()), ")");
  return function == nullptr
             ? text
             : absl::StrCat(text, " of function ", Quoted(function->name()));
}

}  // namespace requant
