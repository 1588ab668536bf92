#ifndef REQUANT_BASE_FILES_SHA256_H_
#define REQUANT_BASE_FILES_SHA256_H_

// Computes the same SHA-256 as `sha256sum`, digests of several texts and files,
// and sealed contents.

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
  // The total size of all files.
  int64_t bytes = 0;
};

// Returns the digest of a file; errors name it.
absl::StatusOr<PathDigest> DigestOfFile(const std::string& path);

// Returns the digest of a file or, for a folder, that of sha256sum's output for
// the files below it: a line per file, sorted by name, with the content's
// digest, two spaces, and the path relative to the folder without "./". Errors
// name the path. `digest_of_file` can supply known digests of files.
absl::StatusOr<PathDigest> DigestOfPath(
    const std::string& path,
    const std::function<absl::StatusOr<PathDigest>(const std::string& path)>&
        digest_of_file = DigestOfFile);

// A digest of texts and files, used to detect work that has already been done.
class ContentHash {
 public:
  ContentHash();

  // Adds a text. Where one text ends and the next begins matters.
  void Add(std::string_view text);
  // Adds a file's content, or all files below a folder with their relative
  // names. The path itself does not matter. Errors name it.
  absl::Status AddFile(const std::string& path);

  // Returns 64 hexadecimal digits. Nothing may be added after that.
  std::string Finish();

 private:
  absl::Status AddOneFile(const std::string& path);

  // The SHA256_CTX of TensorFlow's BoringSSL, which takes 112 bytes.
  alignas(16) unsigned char state_[256];
};

// Returns the content preceded by its digest, so that a later reader can detect
// any change.
std::string Sealed(std::string_view content);

// Returns the content of a text that Sealed returned, or nullopt if anything
// about it changed.
std::optional<std::string_view> Unsealed(std::string_view sealed);

}  // namespace requant

#endif  // REQUANT_BASE_FILES_SHA256_H_
