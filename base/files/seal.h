#ifndef REQUANT_BASE_FILES_SEAL_H_
#define REQUANT_BASE_FILES_SEAL_H_

// A content with its digest in front, by which whoever reads it later knows
// that no bit of it has changed.

#include <optional>
#include <string>
#include <string_view>

namespace requant {

std::string Sealed(std::string_view content);

// The content of what Sealed returned; unset if anything about it changed.
std::optional<std::string_view> Unsealed(std::string_view sealed);

}  // namespace requant

#endif  // REQUANT_BASE_FILES_SEAL_H_
