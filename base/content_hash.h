#ifndef REQUANT_BASE_CONTENT_HASH_H_
#define REQUANT_BASE_CONTENT_HASH_H_

// A digest (SHA-256) of texts and files, by which work knows that it has been
// done before.

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace requant {

class ContentHash {
 public:
  ContentHash();

  // Adds a text; where one ends and the next begins matters.
  void Add(std::string_view text);
  // Adds a file's content, or all files below a folder with their names in it.
  // The path itself does not matter. Errors name it.
  absl::Status AddFile(const std::string& path);

  // 64 hexadecimal digits. Nothing may be added after that.
  std::string Finish();

 private:
  void Update(const void* data, size_t size);
  absl::Status AddOneFile(const std::string& path);

  // SHA256_CTX of the library that TensorFlow carries; it takes 112 bytes.
  alignas(16) unsigned char state_[256];
};

// The digest of a text as sha256sum prints it, and in base64.
std::string Sha256(std::string_view text);
std::string Sha256Base64(std::string_view text);

// What sha256sum prints for a file. Errors name it.
absl::StatusOr<std::string> FileSha256(const std::string& path);

// The same for a file; for a folder that of a text with a line
// "<sha256>  <name in the folder>" for each file below it, ordered by name.
// `file_sha256` may know files' digests already.
absl::StatusOr<std::string> PathSha256(
    const std::string& path,
    const std::function<absl::StatusOr<std::string>(const std::string& file)>&
        file_sha256 = FileSha256);

}  // namespace requant

#endif  // REQUANT_BASE_CONTENT_HASH_H_
