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

// From BoringSSL in TensorFlow's library; the wheel lacks its headers.
extern "C" {
int SHA256_Init(void* state);
int SHA256_Update(void* state, const void* data, size_t size);
int SHA256_Final(uint8_t* digest, void* state);
}

namespace requant {
namespace {

constexpr size_t kReadBytes = 1 << 20;
// The digits of a seal and a line break.
constexpr size_t kSealBytes = 65;

std::string FinishState(void* state) {
  std::string digest(32, '\0');
  SHA256_Final(reinterpret_cast<uint8_t*>(digest.data()), state);
  return digest;
}

std::string RawDigest(std::string_view text) {
  alignas(16) unsigned char state[256];
  SHA256_Init(state);
  SHA256_Update(state, text.data(), text.size());
  return FinishState(state);
}

// Adds a file's content; returns its size.
absl::StatusOr<int64_t> AddContent(const std::string& path, void* state) {
  REQUANT_RETURN_IF_ERROR(CheckRegular(path));
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  absl::Cleanup close_file = [fd] { close(fd); };
  std::string buffer(kReadBytes, '\0');
  int64_t size = 0;
  while (true) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, path);
    if (got == 0) return size;
    SHA256_Update(state, buffer.data(), got);
    size += got;
  }
}

// Returns the names of the files below a folder, or nullopt for anything else.
absl::StatusOr<std::optional<std::vector<std::string>>> NamesBelow(
    const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return std::nullopt;
  return FilesBelow(path, /*folders=*/nullptr, OtherEntries::kLeaveOut);
}

}  // namespace

std::string Sha256(std::string_view text) {
  return absl::BytesToHexString(RawDigest(text));
}

std::string Sha256Base64(std::string_view text) {
  return absl::Base64Escape(RawDigest(text));
}

absl::StatusOr<PathDigest> DigestOfFile(const std::string& path) {
  alignas(16) unsigned char state[256];
  SHA256_Init(state);
  PathDigest result;
  REQUANT_ASSIGN_OR_RETURN(result.bytes, AddContent(path, state));
  result.sha256 = absl::BytesToHexString(FinishState(state));
  return result;
}

absl::StatusOr<PathDigest> DigestOfPath(
    const std::string& path,
    const std::function<absl::StatusOr<PathDigest>(const std::string&)>&
        digest_of_file) {
  REQUANT_ASSIGN_OR_RETURN(const auto names, NamesBelow(path));
  if (!names.has_value()) return digest_of_file(path);
  std::string list;
  PathDigest result;
  for (const std::string& name : *names) {
    REQUANT_ASSIGN_OR_RETURN(const PathDigest file,
                             digest_of_file(absl::StrCat(path, "/", name)));
    absl::StrAppend(&list, file.sha256, "  ", name, "\n");
    result.bytes += file.bytes;
  }
  result.sha256 = Sha256(list);
  return result;
}

ContentHash::ContentHash() { SHA256_Init(state_); }

void ContentHash::Add(std::string_view text) {
  const uint64_t size = text.size();
  SHA256_Update(state_, &size, sizeof(size));
  SHA256_Update(state_, text.data(), text.size());
}

absl::Status ContentHash::AddFile(const std::string& path) {
  REQUANT_ASSIGN_OR_RETURN(const auto names, NamesBelow(path));
  if (!names.has_value()) return AddOneFile(path);
  for (const std::string& name : *names) {
    Add(name);
    REQUANT_RETURN_IF_ERROR(AddOneFile(absl::StrCat(path, "/", name)));
  }
  return absl::OkStatus();
}

absl::Status ContentHash::AddOneFile(const std::string& path) {
  REQUANT_ASSIGN_OR_RETURN(const uint64_t size, AddContent(path, state_));
  // The size follows the content, so that a file is read only once.
  SHA256_Update(state_, &size, sizeof(size));
  return absl::OkStatus();
}

std::string ContentHash::Finish() {
  return absl::BytesToHexString(FinishState(state_));
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
