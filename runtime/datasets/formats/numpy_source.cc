#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/files/files.h"
#include "base/records/input_file.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
#include "runtime/datasets/formats/column.h"
#include "runtime/datasets/formats/npy.h"
#include "runtime/datasets/formats/source_format.h"

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

struct ZipEntry {
  std::string name;
  int method = 0;
  bool encrypted = false;
  uint32_t checksum = 0;
  uint64_t packed_bytes = 0;
  uint64_t bytes = 0;
  uint64_t header_offset = 0;
};

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

// Reads the entries of a zip archive (including zip64) as streams, so that a
// false claim about the unpacked size costs nothing.
class ZipFile {
 public:
  // Reads the archive's directory. Errors name the path.
  static absl::StatusOr<std::unique_ptr<ZipFile>> Open(
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

  ~ZipFile() { close(fd_); }
  ZipFile(const ZipFile&) = delete;
  ZipFile& operator=(const ZipFile&) = delete;

  const std::vector<ZipEntry>& entries() const { return entries_; }

  // Opens one of entries(), stored or deflated. Content without the directory's
  // size and checksum ends in a DataLoss error. Streams must not outlive the
  // ZipFile; several may be read in turn.
  absl::StatusOr<std::unique_ptr<InputFile>> OpenEntry(
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
      return Corrupt(
          absl::StrCat(entry.name, " reaches beyond the file's end"));
    }
    std::unique_ptr<InputFile> content =
        std::make_unique<FileRange>(fd_, start, entry.packed_bytes);
    if (entry.method == kDeflated) content = Inflated(std::move(content));
    return std::make_unique<EntryFile>(entry, std::move(content));
  }

 private:
  ZipFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  absl::Status Corrupt(std::string_view why) const {
    return absl::DataLossError(
        absl::StrCat(path_, " is not a sound zip archive: ", why));
  }

  absl::StatusOr<std::string> ReadAt(uint64_t offset, uint64_t size) const {
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

  absl::Status ReadZip64End(uint64_t end_offset, uint64_t* offset,
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

  // Finds the directory with the record at the file's end.
  absl::Status FindDirectory(uint64_t* offset, uint64_t* size) const {
    const uint64_t tail_bytes =
        std::min(file_bytes_, kEndBytes + kMaxCommentBytes);
    const uint64_t tail_offset = file_bytes_ - tail_bytes;
    REQUANT_ASSIGN_OR_RETURN(const std::string tail,
                             ReadAt(tail_offset, tail_bytes));
    const char signature[] = "PK\x05\x06";
    const size_t end = tail.rfind(signature);
    if (end == std::string::npos || tail.size() - end < kEndBytes) {
      return Corrupt(
          absl::StartsWith(tail, "\x93NUMPY")
              ? "it is an .npy file; name it and its feature in arrays"
              : "its directory is missing");
    }
    *size = NumberAt<uint32_t>(tail, end + 12);
    *offset = NumberAt<uint32_t>(tail, end + 16);
    if (*size != kIn64Bits && *offset != kIn64Bits) return absl::OkStatus();
    return ReadZip64End(tail_offset + end, offset, size);
  }

  absl::Status ReadDirectory() {
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

  const std::string path_;
  const int fd_;
  uint64_t file_bytes_ = 0;
  std::vector<ZipEntry> entries_;
};

// An array that is being read.
struct Array {
  // The name in messages: "x.npy", or "f.npz: array \"x\"".
  std::string name;
  std::unique_ptr<InputFile> file;
  NpyHeader header;
  NpyConverter convert = nullptr;
  int64_t row_bytes = 0;

  absl::Status Refuse(const absl::Status& status) const {
    return absl::Status(status.code(),
                        absl::StrCat(name, ": ", status.message()));
  }
  absl::Status Refuse(std::string_view why) const {
    return Refuse(absl::InvalidArgumentError(why));
  }
};

// The arrays of one .npz file, or all .npy files; one per column.
struct Part {
  std::unique_ptr<ZipFile> zip;
  std::vector<Array> arrays;
  int64_t rows = 0;
  // The total size of its files.
  int64_t bytes = 0;
};

// Returns `shape` without dimensions of 1, which do not affect values' order.
std::vector<int64_t> WithoutOnes(std::vector<int64_t> shape) {
  shape.erase(std::remove(shape.begin(), shape.end(), 1), shape.end());
  return shape;
}

// Checks that the array holds what the column declares.
absl::Status Fit(const Column& column, Array* array) {
  const std::vector<int64_t>& shape = array->header.shape;
  if (shape.empty()) {
    return array->Refuse("it is a single value, not an array of records");
  }
  const std::vector<int64_t> record(shape.begin() + 1, shape.end());
  std::vector<int64_t> declared(column.shape.dims());
  for (int i = 0; i < column.shape.dims(); ++i) {
    declared[i] = column.shape.dim_size(i);
  }
  if (WithoutOnes(record) != WithoutOnes(declared)) {
    return array->Refuse(absl::StrCat(
        "its records have the shape [", absl::StrJoin(record, ", "),
        "], and the declaration says [", absl::StrJoin(declared, ", "), "]"));
  }
  if (array->header.fortran_order && WithoutOnes(shape).size() > 1) {
    return array->Refuse(
        "it is in Fortran order; save numpy.ascontiguousarray(x)");
  }
  const auto convert = NpyConverterTo(array->header, column.dtype);
  if (!convert.ok()) return array->Refuse(convert.status());
  array->convert = *convert;
  if (array->header.item_bytes > kMaxElements / column.elements) {
    return array->Refuse("its records are too large");
  }
  array->row_bytes = array->header.item_bytes * column.elements;
  return absl::OkStatus();
}

// Reads arrays as streams, row by row, so that memory does not depend on their
// size.
class NumpyChunks : public ChunkSource {
 public:
  NumpyChunks(const NumpySource& numpy, std::vector<Column> columns)
      : numpy_(numpy), columns_(std::move(columns)) {}

  int parts() const { return numpy_.files().empty() ? 1 : numpy_.files_size(); }

  // Opens the arrays of a part and checks them against the declaration and
  // each other.
  absl::StatusOr<std::shared_ptr<Part>> OpenPart(int index) const {
    auto part = std::make_shared<Part>();
    if (!numpy_.files().empty()) {
      REQUANT_ASSIGN_OR_RETURN(part->zip, ZipFile::Open(numpy_.files(index)));
      part->bytes = BytesOf(numpy_.files(index)).value_or(0);
    }
    for (const auto& [feature, file] : numpy_.arrays()) {
      part->bytes += BytesOf(file).value_or(0);
    }
    for (const Column& column : columns_) {
      REQUANT_ASSIGN_OR_RETURN(
          Array array,
          numpy_.files().empty()
              ? OpenNpy(column)
              : OpenEntry(column, numpy_.files(index), *part->zip));
      const auto header = ReadNpyHeader(array.file.get());
      if (!header.ok()) return array.Refuse(header.status());
      array.header = *header;
      REQUANT_RETURN_IF_ERROR(Fit(column, &array));
      const int64_t rows = array.header.shape[0];
      if (!part->arrays.empty() && rows != part->rows) {
        return array.Refuse(absl::StrCat("it has ", rows, " records, and ",
                                         part->arrays[0].name, " has ",
                                         part->rows));
      }
      part->rows = rows;
      part->arrays.push_back(std::move(array));
    }
    return part;
  }

  absl::StatusOr<RawChunk> Read(int64_t max_rows) override {
    while (part_ == nullptr || row_ == part_->rows) {
      if (part_ != nullptr) {
        REQUANT_RETURN_IF_ERROR(CheckEnd());
        finished_bytes_ = position();
      }
      if (next_part_ == parts()) return RawChunk();
      REQUANT_ASSIGN_OR_RETURN(part_, OpenPart(next_part_++));
      row_ = 0;
    }
    int64_t row_bytes = 1;
    for (const Array& array : part_->arrays) {
      row_bytes = std::max(row_bytes, array.row_bytes);
    }
    const int64_t rows =
        std::min({max_rows, part_->rows - row_,
                  std::max<int64_t>(1, kChunkBytes / row_bytes)});
    std::vector<std::string> bytes(columns_.size());
    for (size_t c = 0; c < columns_.size(); ++c) {
      REQUANT_RETURN_IF_ERROR(ReadRows(part_->arrays[c], rows, &bytes[c]));
    }
    row_ += rows;
    return RawChunk{rows, [this, rows, part = part_, bytes = std::move(bytes)] {
                      return Decode(*part, rows, bytes);
                    }};
  }

  int64_t position() const override {
    if (part_ == nullptr || part_->rows == 0) return finished_bytes_;
    return finished_bytes_ +
           static_cast<double>(part_->bytes) * row_ / part_->rows;
  }

 private:
  absl::StatusOr<Chunk> Decode(const Part& part, int64_t rows,
                               const std::vector<std::string>& bytes) const {
    Chunk chunk;
    chunk.rows = rows;
    for (size_t c = 0; c < columns_.size(); ++c) {
      REQUANT_ASSIGN_OR_RETURN(tensorflow::Tensor tensor,
                               AllocateRows(columns_[c], rows));
      const Array& array = part.arrays[c];
      array.convert(bytes[c].data(), array.header.item_bytes,
                    rows * columns_[c].elements, tensor.data());
      chunk.columns.push_back(std::move(tensor));
    }
    return chunk;
  }

  absl::StatusOr<Array> OpenNpy(const Column& column) const {
    const auto path = numpy_.arrays().find(column.feature);
    if (path == numpy_.arrays().end()) {
      std::vector<std::string> names;
      for (const auto& [name, file] : numpy_.arrays()) names.push_back(name);
      std::sort(names.begin(), names.end());
      return absl::InvalidArgumentError(
          absl::StrCat("numpy has no array for feature \"", column.feature,
                       "\"", DidYouMean(column.feature, names)));
    }
    Array array;
    array.name = path->second;
    REQUANT_ASSIGN_OR_RETURN(array.file, InputFile::Open(path->second));
    return array;
  }

  absl::StatusOr<Array> OpenEntry(const Column& column, const std::string& path,
                                  const ZipFile& zip) const {
    std::vector<std::string> names;
    for (const ZipEntry& entry : zip.entries()) {
      const std::string_view name = absl::StripSuffix(entry.name, ".npy");
      names.emplace_back(name);
      if (name != column.feature) continue;
      Array array;
      array.name = absl::StrCat(path, ": array \"", name, "\"");
      REQUANT_ASSIGN_OR_RETURN(array.file, zip.OpenEntry(entry));
      return array;
    }
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has no array \"", column.feature, "\"",
                     DidYouMean(column.feature, names)));
  }

  absl::Status ReadRows(const Array& array, int64_t rows,
                        std::string* bytes) const {
    const size_t size = rows * array.row_bytes;
    // Reading piecewise keeps a false shape from costing memory.
    constexpr size_t kPiece = 1 << 20;
    while (bytes->size() < size) {
      const size_t old_size = bytes->size();
      const size_t piece = std::min(kPiece, size - old_size);
      bytes->resize(old_size + piece);
      const absl::StatusOr<size_t> got =
          ReadFully(array.file.get(), bytes->data() + old_size, piece);
      if (!got.ok()) return array.Refuse(got.status());
      if (*got == piece) continue;
      return array.Refuse(absl::DataLossError(absl::StrCat(
          "it ends within record ", row_ + (old_size + *got) / array.row_bytes,
          " (counting from 0) of ", part_->rows)));
    }
    return absl::OkStatus();
  }

  // Reading beyond the last row also checks the archive's checksums.
  absl::Status CheckEnd() const {
    for (const Array& array : part_->arrays) {
      char byte;
      const absl::StatusOr<size_t> got = array.file->Read(&byte, 1);
      if (!got.ok()) return array.Refuse(got.status());
      if (*got == 0) continue;
      return array.Refuse(absl::DataLossError(absl::StrCat(
          "it goes on after its last record, ", part_->rows, " in all")));
    }
    return absl::OkStatus();
  }

  const NumpySource numpy_;
  const std::vector<Column> columns_;
  int next_part_ = 0;
  std::shared_ptr<Part> part_;
  // The next row of part_.
  int64_t row_ = 0;
  // The total size of the parts before it.
  int64_t finished_bytes_ = 0;
};

}  // namespace

const SourceFormat kNumpyFormat = {
    DatasetSpec::kNumpy,
    [](DatasetSpec* spec) { return spec->mutable_numpy()->mutable_files(); },
    /*check=*/nullptr,
    [](const DatasetSpec& spec, const std::vector<Column>& columns)
        -> absl::StatusOr<std::unique_ptr<ChunkSource>> {
      const NumpySource& numpy = spec.numpy();
      if (!numpy.files().empty() && !numpy.arrays().empty()) {
        return absl::InvalidArgumentError(
            "numpy has both files (.npz) and arrays (.npy); give one of them");
      }
      auto source = std::make_unique<NumpyChunks>(numpy, columns);
      // All headers are checked at once.
      for (int i = 0; i < source->parts(); ++i) {
        REQUANT_RETURN_IF_ERROR(source->OpenPart(i).status());
      }
      return source;
    }};

}  // namespace requant
