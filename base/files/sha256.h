#ifndef REQUANT_BASE_FILES_SHA256_H_
#define REQUANT_BASE_FILES_SHA256_H_

// SHA-256 as everyone else computes it: `sha256sum` prints the same. And what
// is made of it: digests of several texts and files, and sealed contents.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace requant {

// Returns 64 hexadecimal digits, or the same bytes in base64.
std::string Sha256(std::string_view text);
std::string Sha256Base64(std::string_view text);

struct PathDigest {
  std::string sha256;
  // Those of all files together.
  int64_t bytes = 0;
};

// Returns the digest of a file; errors name it.
absl::StatusOr<PathDigest> DigestOfFile(const std::string& path);

// Returns the digest of a file's content, or, for a folder, that of a text with
// a line for each file below it, by name: the content's digest, two blanks, the
// path from the folder on ("./" excluded): sha256sum's output for these files.
// Errors name the path. `digest_of_file` may know files' digests already.
absl::StatusOr<PathDigest> DigestOfPath(
    const std::string& path,
    const std::function<absl::StatusOr<PathDigest>(const std::string& path)>&
        digest_of_file = DigestOfFile);

// A digest of texts and files, by which work knows that it has been done
// before.
class ContentHash {
 public:
  ContentHash();

  // Adds a text; where one ends and the next begins matters.
  void Add(std::string_view text);
  // Adds a file's content, or all files below a folder with their names in it.
  // The path itself does not matter. Errors name it.
  absl::Status AddFile(const std::string& path);

  // Returns 64 hexadecimal digits. Nothing may be added after that.
  std::string Finish();

 private:
  absl::Status AddOneFile(const std::string& path);

  // SHA256_CTX of the library that TensorFlow carries; it takes 112 bytes.
  alignas(16) unsigned char state_[256];
};

// Returns a content with its digest in front, by which a later reader knows
// that no bit of it has changed.
std::string Sealed(std::string_view content);

// Returns the content of what Sealed returned; unset if anything about it
// changed.
std::optional<std::string_view> Unsealed(std::string_view sealed);

}  // namespace requant

#endif  // REQUANT_BASE_FILES_SHA256_H_
