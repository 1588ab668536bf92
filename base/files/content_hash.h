#ifndef REQUANT_BASE_FILES_CONTENT_HASH_H_
#define REQUANT_BASE_FILES_CONTENT_HASH_H_

// A digest (SHA-256) of texts and files, by which work knows that it has been
// done before.

#include <string>
#include <string_view>

#include "absl/status/status.h"

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

}  // namespace requant

#endif  // REQUANT_BASE_FILES_CONTENT_HASH_H_
