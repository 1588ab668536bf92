#include "base/files/content_hash.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/files/files_below.h"
#include "base/status_macros.h"

// BoringSSL's, part of TensorFlow's library; its headers are not in the wheel.
extern "C" {
int SHA256_Init(void* state);
int SHA256_Update(void* state, const void* data, size_t size);
int SHA256_Final(uint8_t* digest, void* state);
}

namespace requant {
namespace {

constexpr size_t kDigestBytes = 32;
constexpr size_t kReadBytes = 1 << 20;

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
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error)) return AddOneFile(path);
  REQUANT_ASSIGN_OR_RETURN(
      const std::vector<std::string> names,
      FilesBelow(path, /*folders=*/nullptr, OtherEntries::kLeaveOut));
  for (const std::string& name : names) {
    Add(name);
    REQUANT_RETURN_IF_ERROR(AddOneFile(absl::StrCat(path, "/", name)));
  }
  return absl::OkStatus();
}

absl::Status ContentHash::AddOneFile(const std::string& path) {
  REQUANT_RETURN_IF_ERROR(CheckRegular(path));
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  absl::Cleanup close_file = [fd] { close(fd); };
  std::string buffer(kReadBytes, '\0');
  uint64_t size = 0;
  while (true) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, path);
    if (got == 0) break;
    Update(buffer.data(), got);
    size += got;
  }
  // Behind the content, so that a file is read only once.
  Update(&size, sizeof(size));
  return absl::OkStatus();
}

std::string ContentHash::Finish() {
  uint8_t digest[kDigestBytes];
  SHA256_Final(digest, state_);
  return absl::BytesToHexString(
      std::string_view(reinterpret_cast<const char*>(digest), sizeof(digest)));
}

}  // namespace requant
