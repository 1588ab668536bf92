#include "base/files/sha256.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/files/files.h"
#include "base/status_macros.h"

// BoringSSL's, part of TensorFlow's library; its headers are not in the wheel.
extern "C" {
int SHA256_Init(void* state);
int SHA256_Update(void* state, const void* data, size_t size);
int SHA256_Final(uint8_t* digest, void* state);
}

namespace requant {
namespace {

constexpr size_t kReadBytes = 1 << 20;
// The digits of a seal and the end of their line.
constexpr size_t kSealBytes = 65;

class Digest {
 public:
  Digest() { SHA256_Init(state_); }

  void Add(std::string_view text) {
    SHA256_Update(state_, text.data(), text.size());
  }
  std::string Finish() {
    std::string digest(32, '\0');
    SHA256_Final(reinterpret_cast<uint8_t*>(digest.data()), state_);
    return digest;
  }

 private:
  // SHA256_CTX, which takes 112 bytes.
  alignas(16) unsigned char state_[256];
};

std::string RawDigest(std::string_view text) {
  Digest digest;
  digest.Add(text);
  return digest.Finish();
}

}  // namespace

std::string Sha256(std::string_view text) {
  return absl::BytesToHexString(RawDigest(text));
}

std::string Sha256Base64(std::string_view text) {
  return absl::Base64Escape(RawDigest(text));
}

absl::StatusOr<PathDigest> DigestOfFile(const std::string& path) {
  REQUANT_RETURN_IF_ERROR(CheckRegular(path));
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  absl::Cleanup close_file = [fd] { close(fd); };
  std::string buffer(kReadBytes, '\0');
  Digest digest;
  PathDigest result;
  while (true) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, path);
    if (got == 0) break;
    digest.Add(std::string_view(buffer.data(), got));
    result.bytes += got;
  }
  result.sha256 = absl::BytesToHexString(digest.Finish());
  return result;
}

absl::StatusOr<PathDigest> DigestOfPath(
    const std::string& path,
    const std::function<absl::StatusOr<PathDigest>(const std::string&)>&
        digest_of_file) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return digest_of_file(path);
  REQUANT_ASSIGN_OR_RETURN(
      const std::vector<std::string> names,
      FilesBelow(path, /*folders=*/nullptr, OtherEntries::kLeaveOut));
  std::string list;
  PathDigest result;
  for (const std::string& name : names) {
    REQUANT_ASSIGN_OR_RETURN(const PathDigest file,
                             digest_of_file(absl::StrCat(path, "/", name)));
    absl::StrAppend(&list, file.sha256, "  ", name, "\n");
    result.bytes += file.bytes;
  }
  result.sha256 = Sha256(list);
  return result;
}

void ContentHash::Add(std::string_view text) {
  const uint64_t size = text.size();
  added_.append(reinterpret_cast<const char*>(&size), sizeof(size));
  added_.append(text);
}

absl::Status ContentHash::AddFile(const std::string& path) {
  REQUANT_ASSIGN_OR_RETURN(const PathDigest digest, DigestOfPath(path));
  Add(digest.sha256);
  return absl::OkStatus();
}

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
