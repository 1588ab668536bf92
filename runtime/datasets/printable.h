#ifndef REQUANT_RUNTIME_DATASETS_PRINTABLE_H_
#define REQUANT_RUNTIME_DATASETS_PRINTABLE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace requant {

// `text` with every ASCII control character written as "\xNN": names that come
// from data must neither break a line nor command a terminal.
std::string Printable(std::string_view text);

// `status` with such a message.
absl::Status Printable(const absl::Status& status);

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_PRINTABLE_H_
