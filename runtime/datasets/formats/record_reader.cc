#include "runtime/datasets/formats/record_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/datasets/formats/record_format.h"

namespace requant {
namespace {

constexpr size_t kBufferBytes = 256 << 10;

// Enough to get beyond a long name at the start of a binary graph.
constexpr size_t kBytesToTellText = 1024;

// Protocol buffers end here.
constexpr uint64_t kMaxRecordBytes = std::numeric_limits<int32_t>::max();

// Whether these are the first bytes of a text in UTF-8, which may be cut off
// within a character.
bool LooksLikeText(std::string_view bytes) {
  int following = 0;
  for (const unsigned char c : bytes) {
    if (following > 0) {
      if ((c & 0xc0) != 0x80) return false;
      --following;
    } else if (c >= 0x80) {
      if (c < 0xc2 || c > 0xf4) return false;
      following = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
    } else if (!absl::ascii_isprint(c) && c != '\t' && c != '\n' && c != '\r') {
      return false;
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RecordReader>> RecordReader::Open(
    const std::string& path) {
  REQUANT_ASSIGN_OR_RETURN(std::unique_ptr<InputFile> file,
                           InputFile::Open(path));
  return std::unique_ptr<RecordReader>(new RecordReader(std::move(file)));
}

RecordReader::RecordReader(std::unique_ptr<InputFile> file)
    : file_(std::move(file)), buffer_(kBufferBytes) {}

absl::Status RecordReader::Fill(size_t size) {
  if (end_ - begin_ >= size) return absl::OkStatus();
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  while (end_ < size) {
    REQUANT_ASSIGN_OR_RETURN(
        const size_t n,
        file_->Read(buffer_.data() + end_, buffer_.size() - end_));
    if (n == 0) break;
    end_ += n;
  }
  return absl::OkStatus();
}

absl::Status RecordReader::BadHeader() {
  if (!first_) {
    return absl::DataLossError(
        "the checksum of its length is wrong, so the records after it cannot "
        "be found");
  }
  // A file whose rest cannot be read is judged by what there is.
  (void)Fill(kBytesToTellText);
  return absl::DataLossError(
      LooksLikeText(available().substr(0, kBytesToTellText))
          ? "this is not a TFRecord file: it looks like text"
          : "the checksum of its length is wrong, so this is not a TFRecord "
            "file, or one that is corrupt from the start");
}

absl::Status RecordReader::CutOff(uint64_t length, uint64_t got) const {
  return absl::DataLossError(absl::StrCat("the file ends within it, after ",
                                          got, " of its ", length, " bytes"));
}

absl::StatusOr<bool> RecordReader::Append(uint64_t length, std::string* bytes) {
  const size_t start = bytes->size();
  const uint64_t size = length + kRecordFooterBytes;
  // Piece by piece, so that a length that lies costs no memory.
  for (uint64_t got = 0; got < size;) {
    const absl::Status status = Fill(1);
    if (!status.ok() || begin_ == end_) {
      bytes->resize(start);
      REQUANT_RETURN_IF_ERROR(status);
      return CutOff(length, std::min(got, length));
    }
    const size_t piece = std::min<uint64_t>(end_ - begin_, size - got);
    bytes->append(buffer_.data() + begin_, piece);
    begin_ += piece;
    got += piece;
  }
  first_ = false;
  return true;
}

absl::StatusOr<bool> RecordReader::Read(std::string* bytes) {
  REQUANT_RETURN_IF_ERROR(Fill(kRecordHeaderBytes));
  if (begin_ == end_) return false;
  const std::string_view header = available();
  if (header.size() < kRecordHeaderBytes) {
    if (first_) return BadHeader();
    return absl::DataLossError(
        absl::StrCat("the file ends after ", header.size(),
                     " bytes of its header's ", kRecordHeaderBytes));
  }
  const std::optional<uint64_t> length = RecordLength(header);
  if (!length.has_value()) return BadHeader();
  if (*length > kMaxRecordBytes) {
    return absl::DataLossError(absl::StrCat(
        "it claims to have ", *length,
        " bytes; a tf.train.Example has at most ", kMaxRecordBytes));
  }
  begin_ += kRecordHeaderBytes;
  return Append(*length, bytes);
}

}  // namespace requant
