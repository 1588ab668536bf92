#ifndef REQUANT_RUNTIME_DATASETS_FORMATS_RECORD_READER_H_
#define REQUANT_RUNTIME_DATASETS_FORMATS_RECORD_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/datasets/formats/input_file.h"

namespace requant {

// Cuts a TFRecord file into its records, one after the other. The checksums of
// the data are left to the caller, who may check them on another thread.
class RecordReader {
 public:
  static absl::StatusOr<std::unique_ptr<RecordReader>> Open(
      const std::string& path);

  // Appends the next record's data and, behind it, the stored checksum of the
  // data (kRecordFooterBytes) to `bytes`; false at the end of the file. After
  // an error, `bytes` is as it was and no further record can be found. DataLoss
  // means that the content is bad; its message names neither file nor record.
  absl::StatusOr<bool> Read(std::string* bytes);

  // InputFile::position, of the records read.
  int64_t position() const { return file_->position(end_ - begin_); }

 private:
  explicit RecordReader(std::unique_ptr<InputFile> file);

  // Makes `size` bytes available if the file has them.
  absl::Status Fill(size_t size);
  std::string_view available() const {
    return std::string_view(buffer_.data() + begin_, end_ - begin_);
  }
  absl::Status BadHeader();
  absl::Status CutOff(uint64_t length, uint64_t got) const;
  absl::StatusOr<bool> Append(uint64_t length, std::string* bytes);

  const std::unique_ptr<InputFile> file_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  bool first_ = true;
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_FORMATS_RECORD_READER_H_
