#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/files/files.h"
#include "base/records/input_file.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
#include "runtime/datasets/formats/column.h"
#include "runtime/datasets/formats/feature_sample.h"
#include "runtime/datasets/formats/npy.h"
#include "runtime/datasets/formats/source_format.h"
#include "runtime/datasets/formats/zip_file.h"

namespace requant {
namespace {

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
    const int64_t first = std::exchange(row_, row_ + rows);
    return RawChunk{
        rows, [this, first, rows, part = part_, bytes = std::move(bytes)] {
          return Decode(*part, first, rows, bytes);
        }};
  }

  int64_t position() const override {
    if (part_ == nullptr || part_->rows == 0) return finished_bytes_;
    return finished_bytes_ +
           static_cast<double>(part_->bytes) * row_ / part_->rows;
  }

 private:
  // Decodes the rows from `first` on.
  absl::StatusOr<Chunk> Decode(const Part& part, int64_t first, int64_t rows,
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
    // Only labels that no vocabulary has make a row bad.
    std::vector<std::string> problems(rows);
    REQUANT_RETURN_IF_ERROR(ReadClasses(columns_, &chunk.columns, &problems));
    for (int64_t row = 0; row < rows; ++row) {
      if (problems[row].empty()) continue;
      chunk.bad.push_back(
          {row, absl::StrCat(part.arrays.back().name, ": record ", first + row,
                             " (counting from 0): ", problems[row])});
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

// Returns the tensor type that has the same values, or DT_INVALID.
tensorflow::DataType TypeOfArray(const NpyHeader& header) {
  switch (header.kind) {
    case 'f':
      return header.item_bytes == 2   ? tensorflow::DT_HALF
             : header.item_bytes == 4 ? tensorflow::DT_FLOAT
                                      : tensorflow::DT_DOUBLE;
    case 'i':
      return header.item_bytes == 1   ? tensorflow::DT_INT8
             : header.item_bytes == 8 ? tensorflow::DT_INT64
                                      : tensorflow::DT_INT32;
    case 'u':
      return header.item_bytes == 1   ? tensorflow::DT_UINT8
             : header.item_bytes == 2 ? tensorflow::DT_INT32
             : header.item_bytes == 4 ? tensorflow::DT_INT64
                                      : tensorflow::DT_INVALID;
    case 'b':
      return tensorflow::DT_BOOL;
    default:
      return tensorflow::DT_STRING;
  }
}

absl::StatusOr<FileSample> SampleNumpy(const std::string& path) {
  REQUANT_ASSIGN_OR_RETURN(const std::unique_ptr<ZipFile> zip,
                           ZipFile::Open(path));
  FileSample sample;
  for (const ZipEntry& entry : zip->entries()) {
    if (sample.size() == kMostSampledFeatures) break;
    FeatureSample& array =
        sample[std::string(absl::StripSuffix(entry.name, ".npy"))];
    const auto file = zip->OpenEntry(entry);
    if (!file.ok()) continue;
    const auto header = ReadNpyHeader(file->get());
    if (!header.ok() || header->shape.empty()) continue;
    array.shape.emplace(header->shape.begin() + 1, header->shape.end());
    int64_t elements = 1;
    for (const int64_t size : *array.shape) {
      elements =
          size > 0 && elements <= kMaxElements / size ? elements * size : -1;
      if (elements < 0) break;
    }
    array.elements = elements;
    array.dtype = TypeOfArray(*header);
  }
  return sample;
}

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
    },
    SampleNumpy};

}  // namespace requant
