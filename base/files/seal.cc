#include "base/files/seal.h"

#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/files/sha256.h"

namespace requant {
namespace {

// 64 digits and the end of their line.
constexpr size_t kSealBytes = 65;

}  // namespace

std::string Sealed(std::string_view content) {
  return absl::StrCat(Sha256(content), "\n", content);
}

std::optional<std::string_view> Unsealed(std::string_view sealed) {
  if (sealed.size() < kSealBytes) return std::nullopt;
  const std::string_view content = sealed.substr(kSealBytes);
  if (sealed.substr(0, kSealBytes) != absl::StrCat(Sha256(content), "\n")) {
    return std::nullopt;
  }
  return content;
}

}  // namespace requant
