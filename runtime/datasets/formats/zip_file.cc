#include "runtime/datasets/formats/zip_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace requant {
namespace {

constexpr uint32_t kLocalSignature = 0x04034b50;
constexpr uint32_t kCentralSignature = 0x02014b50;
constexpr uint32_t kZip64EndSignature = 0x06064b50;
constexpr uint32_t kZip64LocatorSignature = 0x07064b50;
constexpr uint64_t kLocalBytes = 30;
constexpr uint64_t kCentralBytes = 46;
constexpr uint64_t kEndBytes = 22;
constexpr uint64_t kZip64EndBytes = 56;
constexpr uint64_t kZip64LocatorBytes = 20;
constexpr uint64_t kMaxCommentBytes = 65535;
constexpr uint64_t kMaxDirectoryBytes = 64 << 20;
constexpr uint32_t kIn64Bits = 0xffffffff;
constexpr uint16_t kZip64ExtraId = 1;
constexpr int kStored = 0;
constexpr int kDeflated = 8;

// Returns the number at `offset`, which must be within `bytes`.
template <typename T>
T NumberAt(std::string_view bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

// Reads a file from an offset on, with pread.
class FileRange : public InputFile {
 public:
  FileRange(int fd, uint64_t offset, uint64_t size)
      : fd_(fd), offset_(offset), left_(size) {}

  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    size = std::min<uint64_t>(size, left_);
    for (;;) {
      const ssize_t n = pread(fd_, buffer, size, offset_);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        return absl::FailedPreconditionError(
            absl::StrCat("cannot be read: ", std::strerror(errno)));
      }
      offset_ += n;
      left_ -= n;
      if (n == 0) left_ = 0;
      return static_cast<size_t>(n);
    }
  }

 private:
  const int fd_;
  uint64_t offset_;
  uint64_t left_;
};

// Reads an entry's bytes; checks their number and checksum at the end.
class EntryFile : public InputFile {
 public:
  EntryFile(const ZipEntry& entry, std::unique_ptr<InputFile> content)
      : content_(std::move(content)), entry_(entry) {}

  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    REQUANT_RETURN_IF_ERROR(status_);
    if (size == 0 || done_) return size_t{0};
    const absl::StatusOr<size_t> n =
        content_->Read(buffer, std::min<size_t>(size, 1 << 30));
    if (!n.ok()) return status_ = n.status();
    produced_ += *n;
    checksum_ = crc32(checksum_, reinterpret_cast<const Bytef*>(buffer), *n);
    if (*n > 0 && produced_ <= entry_.bytes) return n;
    done_ = true;
    if (produced_ != entry_.bytes) {
      status_ = absl::DataLossError(absl::StrCat(
          "it unpacks to ", produced_ > entry_.bytes ? "more" : "less",
          " than the ", entry_.bytes, " bytes that the archive says"));
    } else if (checksum_ != entry_.checksum) {
      status_ = absl::DataLossError("its checksum is wrong");
    }
    REQUANT_RETURN_IF_ERROR(status_);
    return size_t{0};
  }

 private:
  const std::unique_ptr<InputFile> content_;
  const ZipEntry entry_;
  absl::Status status_;
  uint64_t produced_ = 0;
  uLong checksum_ = 0;
  bool done_ = false;
};

// Sets the 64-bit sizes of a zip64 extra field where the 32-bit ones say so.
// Returns false if one is missing.
bool ReadZip64Extra(std::string_view extra, ZipEntry* entry) {
  uint64_t* const fields[] = {&entry->bytes, &entry->packed_bytes,
                              &entry->header_offset};
  std::string_view values;
  while (extra.size() >= 4) {
    const uint16_t id = NumberAt<uint16_t>(extra, 0);
    const std::string_view content =
        extra.substr(4, NumberAt<uint16_t>(extra, 2));
    if (id == kZip64ExtraId) values = content;
    extra.remove_prefix(4 + content.size());
  }
  for (uint64_t* const field : fields) {
    if (*field != kIn64Bits) continue;
    if (values.size() < sizeof(uint64_t)) return false;
    *field = NumberAt<uint64_t>(values, 0);
    values.remove_prefix(sizeof(uint64_t));
  }
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ZipFile>> ZipFile::Open(
    const std::string& path) {
  REQUANT_RETURN_IF_ERROR(CheckReadable(path));
  std::unique_ptr<ZipFile> zip(
      new ZipFile(path, open(path.c_str(), O_RDONLY | O_CLOEXEC)));
  struct stat info;
  if (fstat(zip->fd_, &info) != 0 || !S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is not a regular file"));
  }
  zip->file_bytes_ = info.st_size;
  REQUANT_RETURN_IF_ERROR(zip->ReadDirectory());
  return zip;
}

ZipFile::ZipFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

ZipFile::~ZipFile() { close(fd_); }

absl::StatusOr<std::unique_ptr<InputFile>> ZipFile::OpenEntry(
    const ZipEntry& entry) const {
  if (entry.encrypted) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": ", entry.name, " is encrypted"));
  }
  if (entry.method != kStored && entry.method != kDeflated) {
    return absl::InvalidArgumentError(absl::StrCat(
        path_, ": ", entry.name, " is packed by method ", entry.method,
        "; stored and deflated entries can be read"));
  }
  REQUANT_ASSIGN_OR_RETURN(const std::string header,
                           ReadAt(entry.header_offset, kLocalBytes));
  if (NumberAt<uint32_t>(header, 0) != kLocalSignature) {
    return Corrupt(
        absl::StrCat(entry.name, " is not where the directory says"));
  }
  // The header is inside the file, so this cannot overflow.
  const uint64_t start = entry.header_offset + kLocalBytes +
                         NumberAt<uint16_t>(header, 26) +
                         NumberAt<uint16_t>(header, 28);
  if (start > file_bytes_ || entry.packed_bytes > file_bytes_ - start) {
    return Corrupt(absl::StrCat(entry.name, " reaches beyond the file's end"));
  }
  std::unique_ptr<InputFile> content =
      std::make_unique<FileRange>(fd_, start, entry.packed_bytes);
  if (entry.method == kDeflated) content = Inflated(std::move(content));
  return std::make_unique<EntryFile>(entry, std::move(content));
}

absl::Status ZipFile::Corrupt(std::string_view why) const {
  return absl::DataLossError(
      absl::StrCat(path_, " is not a sound zip archive: ", why));
}

absl::StatusOr<std::string> ZipFile::ReadAt(uint64_t offset,
                                            uint64_t size) const {
  if (offset > file_bytes_ || size > file_bytes_ - offset) {
    return Corrupt("it refers to something beyond its end");
  }
  std::string bytes(size, '\0');
  FileRange range(fd_, offset, size);
  REQUANT_ASSIGN_OR_RETURN(const size_t got,
                           ReadFully(&range, bytes.data(), size));
  if (got == size) return bytes;
  return Corrupt("it became shorter while it was read");
}

absl::Status ZipFile::ReadZip64End(uint64_t end_offset, uint64_t* offset,
                                   uint64_t* size) const {
  if (end_offset < kZip64LocatorBytes) {
    return Corrupt("its zip64 record is missing");
  }
  REQUANT_ASSIGN_OR_RETURN(
      const std::string locator,
      ReadAt(end_offset - kZip64LocatorBytes, kZip64LocatorBytes));
  if (NumberAt<uint32_t>(locator, 0) != kZip64LocatorSignature) {
    return Corrupt("its zip64 record is missing");
  }
  REQUANT_ASSIGN_OR_RETURN(
      const std::string end,
      ReadAt(NumberAt<uint64_t>(locator, 8), kZip64EndBytes));
  if (NumberAt<uint32_t>(end, 0) != kZip64EndSignature) {
    return Corrupt("its zip64 record is missing");
  }
  *size = NumberAt<uint64_t>(end, 40);
  *offset = NumberAt<uint64_t>(end, 48);
  return absl::OkStatus();
}

absl::Status ZipFile::FindDirectory(uint64_t* offset, uint64_t* size) const {
  const uint64_t tail_bytes =
      std::min(file_bytes_, kEndBytes + kMaxCommentBytes);
  const uint64_t tail_offset = file_bytes_ - tail_bytes;
  REQUANT_ASSIGN_OR_RETURN(const std::string tail,
                           ReadAt(tail_offset, tail_bytes));
  const char signature[] = "PK\x05\x06";
  const size_t end = tail.rfind(signature);
  if (end == std::string::npos || tail.size() - end < kEndBytes) {
    return Corrupt(absl::StartsWith(tail, "\x93NUMPY")
                       ? "it is an .npy file; name it and its feature in arrays"
                       : "its directory is missing");
  }
  *size = NumberAt<uint32_t>(tail, end + 12);
  *offset = NumberAt<uint32_t>(tail, end + 16);
  if (*size != kIn64Bits && *offset != kIn64Bits) return absl::OkStatus();
  return ReadZip64End(tail_offset + end, offset, size);
}

absl::Status ZipFile::ReadDirectory() {
  uint64_t offset = 0, size = 0;
  REQUANT_RETURN_IF_ERROR(FindDirectory(&offset, &size));
  if (size > kMaxDirectoryBytes) return Corrupt("its directory is too large");
  REQUANT_ASSIGN_OR_RETURN(const std::string directory, ReadAt(offset, size));
  std::string_view rest = directory;
  while (!rest.empty()) {
    if (rest.size() < kCentralBytes ||
        NumberAt<uint32_t>(rest, 0) != kCentralSignature) {
      return Corrupt("its directory cannot be read");
    }
    ZipEntry entry;
    entry.encrypted = (NumberAt<uint16_t>(rest, 8) & 1) != 0;
    entry.method = NumberAt<uint16_t>(rest, 10);
    entry.checksum = NumberAt<uint32_t>(rest, 16);
    entry.packed_bytes = NumberAt<uint32_t>(rest, 20);
    entry.bytes = NumberAt<uint32_t>(rest, 24);
    entry.header_offset = NumberAt<uint32_t>(rest, 42);
    const size_t name_bytes = NumberAt<uint16_t>(rest, 28);
    const size_t extra_bytes = NumberAt<uint16_t>(rest, 30);
    const size_t comment_bytes = NumberAt<uint16_t>(rest, 32);
    rest.remove_prefix(kCentralBytes);
    if (name_bytes + extra_bytes + comment_bytes > rest.size()) {
      return Corrupt("its directory cannot be read");
    }
    entry.name = std::string(rest.substr(0, name_bytes));
    if (!ReadZip64Extra(rest.substr(name_bytes, extra_bytes), &entry)) {
      return Corrupt("a zip64 size is missing");
    }
    rest.remove_prefix(name_bytes + extra_bytes + comment_bytes);
    entries_.push_back(std::move(entry));
  }
  return absl::OkStatus();
}

}  // namespace requant
