#ifndef REQUANT_BASE_MESSAGE_TEXT_H_
#define REQUANT_BASE_MESSAGE_TEXT_H_

// Numbers as people read them in messages.

#include <cstdint>
#include <string>
#include <string_view>

namespace requant {

// Returns `bytes` with three digits: "812 B", "43.1 kB", "5.00 MB".
std::string SizeText(int64_t bytes);

// Returns `number` and the noun in its form for that number: "1 stage", "12
// stages".
std::string CountText(int64_t number, std::string_view noun);

}  // namespace requant

#endif  // REQUANT_BASE_MESSAGE_TEXT_H_
