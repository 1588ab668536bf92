#ifndef REQUANT_RUNTIME_DATASETS_FORMATS_ZIP_FILE_H_
#define REQUANT_RUNTIME_DATASETS_FORMATS_ZIP_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/records/input_file.h"

namespace requant {

struct ZipEntry {
  std::string name;
  int method = 0;
  bool encrypted = false;
  uint32_t checksum = 0;
  uint64_t packed_bytes = 0;
  uint64_t bytes = 0;
  uint64_t header_offset = 0;
};

// Reads the entries of a zip archive (including zip64) as streams, so that a
// false claim about the unpacked size costs nothing.
class ZipFile {
 public:
  // Reads the archive's directory. Errors name the path.
  static absl::StatusOr<std::unique_ptr<ZipFile>> Open(const std::string& path);
  ~ZipFile();
  ZipFile(const ZipFile&) = delete;
  ZipFile& operator=(const ZipFile&) = delete;

  const std::vector<ZipEntry>& entries() const { return entries_; }

  // Opens one of entries(), stored or deflated. Content without the directory's
  // size and checksum ends in a DataLoss error. Streams must not outlive the
  // ZipFile; several may be read in turn.
  absl::StatusOr<std::unique_ptr<InputFile>> OpenEntry(
      const ZipEntry& entry) const;

 private:
  ZipFile(std::string path, int fd);

  absl::Status Corrupt(std::string_view why) const;
  absl::StatusOr<std::string> ReadAt(uint64_t offset, uint64_t size) const;
  absl::Status ReadZip64End(uint64_t end_offset, uint64_t* offset,
                            uint64_t* size) const;
  // Finds the directory with the record at the file's end.
  absl::Status FindDirectory(uint64_t* offset, uint64_t* size) const;
  absl::Status ReadDirectory();

  const std::string path_;
  const int fd_;
  uint64_t file_bytes_ = 0;
  std::vector<ZipEntry> entries_;
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_FORMATS_ZIP_FILE_H_
