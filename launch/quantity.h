#ifndef REQUANT_LAUNCH_QUANTITY_H_
#define REQUANT_LAUNCH_QUANTITY_H_

// Limits as people type them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace requant::launch {

// "512m", "1.5g", "6GB", "1048576": bytes, with units of 1024 in either case.
// Nullopt for anything else and for what is beyond 2^60.
std::optional<int64_t> ParseBytes(std::string_view text);

// "2", "2.5": a number that is not negative, with at most nine digits on either
// side of the point.
std::optional<double> ParseDecimal(std::string_view text);

// "512", "0": a number of at most nine digits.
std::optional<int64_t> ParseCount(std::string_view text);

// "12.5 GB", "800 MB", with units of 1024.
std::string FormatBytes(int64_t bytes);

}  // namespace requant::launch

#endif  // REQUANT_LAUNCH_QUANTITY_H_
