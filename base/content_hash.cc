#include "base/content_hash.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status_macros.h"

// BoringSSL's, part of TensorFlow's library; its headers are not in the wheel.
extern "C" {
int SHA256_Init(void* state);
int SHA256_Update(void* state, const void* data, size_t size);
int SHA256_Final(uint8_t* digest, void* state);
}

namespace requant {
namespace {

namespace fs = std::filesystem;

constexpr size_t kDigestBytes = 32;
constexpr size_t kReadBytes = 1 << 20;

// A name in a folder and its path.
using NamedFile = std::pair<std::string, std::string>;

// All regular files below a folder, by name.
absl::StatusOr<std::vector<NamedFile>> FilesBelow(const std::string& path) {
  std::error_code error;
  std::vector<NamedFile> files;
  for (fs::recursive_directory_iterator at(path, error), end;
       !error && at != end; at.increment(error)) {
    if (!at->is_regular_file(error)) continue;
    files.emplace_back(at->path().lexically_relative(path).string(),
                       at->path().string());
  }
  if (error) {
    return absl::ErrnoToStatus(error.value(), absl::StrCat("reading ", path));
  }
  std::sort(files.begin(), files.end());
  return files;
}

absl::Status ReadParts(const std::string& path,
                       const std::function<void(std::string_view)>& on_part) {
  REQUANT_RETURN_IF_ERROR(CheckRegular(path));
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  absl::Cleanup close_file = [fd] { close(fd); };
  std::string buffer(kReadBytes, '\0');
  while (true) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, path);
    if (got == 0) return absl::OkStatus();
    on_part(std::string_view(buffer.data(), got));
  }
}

// The digest's bytes.
std::string FinishedDigest(void* state) {
  std::string digest(kDigestBytes, '\0');
  SHA256_Final(reinterpret_cast<uint8_t*>(digest.data()), state);
  return digest;
}

std::string FinishedHash(void* state) {
  return absl::BytesToHexString(FinishedDigest(state));
}

std::string DigestOf(std::string_view text) {
  // SHA256_CTX, as in ContentHash.
  alignas(16) unsigned char state[256];
  SHA256_Init(state);
  SHA256_Update(state, text.data(), text.size());
  return FinishedDigest(state);
}

}  // namespace

ContentHash::ContentHash() { SHA256_Init(state_); }

void ContentHash::Update(const void* data, size_t size) {
  SHA256_Update(state_, data, size);
}

void ContentHash::Add(std::string_view text) {
  const uint64_t size = text.size();
  Update(&size, sizeof(size));
  Update(text.data(), text.size());
}

absl::Status ContentHash::AddFile(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return AddOneFile(path);
  REQUANT_ASSIGN_OR_RETURN(const std::vector<NamedFile> files,
                           FilesBelow(path));
  for (const auto& [name, file] : files) {
    Add(name);
    REQUANT_RETURN_IF_ERROR(AddOneFile(file));
  }
  return absl::OkStatus();
}

absl::Status ContentHash::AddOneFile(const std::string& path) {
  uint64_t size = 0;
  REQUANT_RETURN_IF_ERROR(ReadParts(path, [&](std::string_view part) {
    Update(part.data(), part.size());
    size += part.size();
  }));
  // Behind the content, so that a file is read only once.
  Update(&size, sizeof(size));
  return absl::OkStatus();
}

std::string ContentHash::Finish() { return FinishedHash(state_); }

std::string Sha256(std::string_view text) {
  return absl::BytesToHexString(DigestOf(text));
}

std::string Sha256Base64(std::string_view text) {
  return absl::Base64Escape(DigestOf(text));
}

absl::StatusOr<std::string> FileSha256(const std::string& path) {
  // SHA256_CTX, as in ContentHash.
  alignas(16) unsigned char state[256];
  SHA256_Init(state);
  REQUANT_RETURN_IF_ERROR(ReadParts(path, [&](std::string_view part) {
    SHA256_Update(state, part.data(), part.size());
  }));
  return FinishedHash(state);
}

absl::StatusOr<std::string> PathSha256(
    const std::string& path,
    const std::function<absl::StatusOr<std::string>(const std::string&)>&
        file_sha256) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return file_sha256(path);
  REQUANT_ASSIGN_OR_RETURN(const std::vector<NamedFile> files,
                           FilesBelow(path));
  std::string lines;
  for (const auto& [name, file] : files) {
    REQUANT_ASSIGN_OR_RETURN(const std::string digest, file_sha256(file));
    absl::StrAppend(&lines, digest, "  ", name, "\n");
  }
  return Sha256(lines);
}

}  // namespace requant
