#include "graph/gzip.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/platform/tstring.h"
#include "xla/tsl/lib/io/inputstream_interface.h"
#include "xla/tsl/lib/io/zlib_compression_options.h"
#include "xla/tsl/lib/io/zlib_inputstream.h"

namespace requant {
namespace {

constexpr int64_t kBufferBytes = 1 << 18;
// A gzip member ends with the size of its content, modulo 2^32.
constexpr size_t kSizeBytes = 4;
// The smallest member: header, an empty block, checksum and size.
constexpr size_t kLeastBytes = 10 + 2 + 4 + kSizeBytes;

class MemoryStream : public tsl::io::InputStreamInterface {
 public:
  explicit MemoryStream(std::string_view content) : content_(content) {}

  absl::Status ReadNBytes(int64_t bytes, tsl::tstring* result) override {
    const std::string_view part = content_.substr(position_, bytes);
    result->assign(part.data(), part.size());
    position_ += part.size();
    if (static_cast<int64_t>(part.size()) == bytes) return absl::OkStatus();
    return absl::OutOfRangeError("end of the content");
  }

  int64_t Tell() const override { return position_; }

  absl::Status Reset() override {
    position_ = 0;
    return absl::OkStatus();
  }

 private:
  const std::string_view content_;
  size_t position_ = 0;
};

uint32_t StatedSize(std::string_view content) {
  uint32_t size = 0;
  for (size_t i = 0; i < kSizeBytes; ++i) {
    size |= static_cast<uint32_t>(
                static_cast<uint8_t>(content[content.size() - kSizeBytes + i]))
            << (8 * i);
  }
  return size;
}

absl::Status Damaged(const std::string& path) {
  return absl::DataLossError(
      absl::StrCat(path, " is a damaged or truncated gzip file"));
}

}  // namespace

bool IsGzipped(std::string_view content) {
  return absl::StartsWith(content, "\x1f\x8b\x08");
}

absl::StatusOr<std::string> Gunzip(std::string_view content,
                                   const std::string& path, int64_t max_bytes) {
  if (!IsGzipped(content) || content.size() < kLeastBytes) return Damaged(path);
  MemoryStream compressed(content);
  tsl::io::ZlibInputStream stream(&compressed, kBufferBytes, kBufferBytes,
                                  tsl::io::ZlibCompressionOptions::GZIP());
  std::string plain;
  absl::Status status;
  while (status.ok()) {
    tsl::tstring part;
    status = stream.ReadNBytes(kBufferBytes, &part);
    plain.append(part.data(), part.size());
    if (static_cast<int64_t>(plain.size()) > max_bytes) {
      return absl::OutOfRangeError(absl::StrCat(
          path, " holds more than ", max_bytes, " bytes when unpacked"));
    }
  }
  if (!absl::IsOutOfRange(status) ||
      StatedSize(content) != static_cast<uint32_t>(plain.size())) {
    return Damaged(path);
  }
  return plain;
}

}  // namespace requant
