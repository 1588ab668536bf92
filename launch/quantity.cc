#include "launch/quantity.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace requant::launch {
namespace {

constexpr size_t kMostDigits = 9;

bool AreDigits(std::string_view text, size_t most) {
  return !text.empty() && text.size() <= most &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

char ToLower(char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; }

}  // namespace

std::optional<int64_t> ParseCount(std::string_view text) {
  if (!AreDigits(text, kMostDigits)) return std::nullopt;
  return std::strtoll(std::string(text).c_str(), nullptr, 10);
}

std::optional<double> ParseDecimal(std::string_view text) {
  const size_t point = text.find('.');
  if (!AreDigits(text.substr(0, point), kMostDigits)) return std::nullopt;
  if (point != std::string_view::npos &&
      !AreDigits(text.substr(point + 1), kMostDigits)) {
    return std::nullopt;
  }
  return std::strtod(std::string(text).c_str(), nullptr);
}

std::optional<int64_t> ParseBytes(std::string_view text) {
  constexpr std::string_view kUnits = "kmgt";
  constexpr int64_t kMost = int64_t{1} << 60;
  // Plain bytes may have more digits than a number of gigabytes.
  if (AreDigits(text, 18)) {
    return std::strtoll(std::string(text).c_str(), nullptr, 10);
  }
  if (!text.empty() && ToLower(text.back()) == 'b') text.remove_suffix(1);
  double factor = 1;
  if (!text.empty()) {
    const size_t unit = kUnits.find(ToLower(text.back()));
    if (unit != std::string_view::npos) {
      factor = static_cast<double>(int64_t{1} << (10 * (unit + 1)));
      text.remove_suffix(1);
    }
  }
  const std::optional<double> number = ParseDecimal(text);
  if (!number.has_value() || *number * factor > kMost) return std::nullopt;
  return static_cast<int64_t>(*number * factor);
}

std::string FormatBytes(int64_t bytes) {
  char text[64];
  if (bytes >= int64_t{1} << 30) {
    std::snprintf(text, sizeof(text), "%.1f GB", bytes / double(1 << 30));
  } else {
    std::snprintf(text, sizeof(text), "%lld MB",
                  static_cast<long long>(bytes >> 20));
  }
  return text;
}

}  // namespace requant::launch
