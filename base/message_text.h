#ifndef REQUANT_BASE_MESSAGE_TEXT_H_
#define REQUANT_BASE_MESSAGE_TEXT_H_

// Formats numbers for messages.

#include <cstdint>
#include <string>
#include <string_view>

namespace requant {

// Returns `bytes` to three digits: "812 B", "43.1 kB", "5.00 MB".
std::string SizeText(int64_t bytes);

// Returns `number` with the noun in its singular or plural form: "1 stage", "12
// stages".
std::string CountText(int64_t number, std::string_view noun);

}  // namespace requant

#endif  // REQUANT_BASE_MESSAGE_TEXT_H_
