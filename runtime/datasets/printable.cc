#include "runtime/datasets/printable.h"

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"

namespace requant {

std::string Printable(std::string_view text) {
  std::string printable;
  printable.reserve(text.size());
  for (const unsigned char c : text) {
    if (absl::ascii_iscntrl(c)) {
      absl::StrAppendFormat(&printable, "\\x%02x", c);
    } else {
      printable.push_back(c);
    }
  }
  return printable;
}

absl::Status Printable(const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), Printable(status.message()));
}

}  // namespace requant
