#ifndef REQUANT_BASE_FILES_SHA256_H_
#define REQUANT_BASE_FILES_SHA256_H_

// SHA-256 as everyone else computes it: `sha256sum` prints the same.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace requant {

// 64 hexadecimal digits, and the same bytes in base64.
std::string Sha256(std::string_view text);
std::string Sha256Base64(std::string_view text);

struct PathDigest {
  std::string sha256;
  // Of all files together.
  int64_t bytes = 0;
};

// Of a file; errors name it.
absl::StatusOr<PathDigest> DigestOfFile(const std::string& path);

// Of a file, its content's. Of a folder, that of a text with a line for each
// file below it, by name: the content's digest, two blanks, the path from the
// folder on ("./" excluded): sha256sum's output for these files. Errors name
// the path.
// `digest_of_file` may know files' digests already.
absl::StatusOr<PathDigest> DigestOfPath(
    const std::string& path,
    const std::function<absl::StatusOr<PathDigest>(const std::string& path)>&
        digest_of_file = DigestOfFile);

}  // namespace requant

#endif  // REQUANT_BASE_FILES_SHA256_H_
