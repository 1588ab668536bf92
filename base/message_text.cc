#include "base/message_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace requant {

std::string SizeText(int64_t bytes) {
  if (bytes < 1000) return absl::StrCat(bytes, " B");
  std::string_view units = "kMGTPE";
  double number = static_cast<double>(bytes) / 1000;
  while (number >= 999.5) {
    number /= 1000;
    units.remove_prefix(1);
  }
  const int decimals = number < 9.995 ? 2 : number < 99.95 ? 1 : 0;
  return absl::StrFormat("%.*f %cB", decimals, number, units.front());
}

std::string CountText(int64_t number, std::string_view noun) {
  return absl::StrCat(number, " ", noun, number == 1 ? "" : "s");
}

}  // namespace requant
