#include "runtime/session/token_array.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/records/input_file.h"
#include "base/status_macros.h"
#include "runtime/datasets/batch_source.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/datasets/formats/npy.h"

namespace requant {
namespace {

namespace fs = std::filesystem;

constexpr char kInput[] = "input_ids";

absl::StatusOr<NpyHeader> ReadTokenHeader(const std::string& path) {
  REQUANT_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file,
                           InputFile::Open(path));
  const absl::StatusOr<NpyHeader> header = ReadNpyHeader(file.get());
  if (!header.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", header.status().message()));
  }
  if ((header->kind != 'i' && header->kind != 'u') ||
      header->shape.size() != 2 || header->shape[0] < 1 ||
      header->shape[1] < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        " is not a token array: it must hold whole numbers in two dimensions, "
        "one text per row"));
  }
  return *header;
}

}  // namespace

absl::StatusOr<std::string> FindTokenArray(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    REQUANT_RETURN_IF_ERROR(CheckReadable(path));
    return path;
  }
  std::vector<std::string> names;
  for (fs::directory_iterator at(path, error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().extension() == ".npy" && at->is_regular_file(error)) {
      names.push_back(at->path().filename().string());
    }
  }
  if (error) {
    return absl::ErrnoToStatus(error.value(),
                               absl::StrCat("cannot read ", path));
  }
  // The array that is named after the input goes before all others.
  std::sort(names.begin(), names.end(),
            [](const std::string& a, const std::string& b) {
              const std::string named = absl::StrCat(kInput, ".npy");
              return std::make_pair(a != named, a) <
                     std::make_pair(b != named, b);
            });
  for (const std::string& name : names) {
    const std::string file = absl::StrCat(path, "/", name);
    if (ReadTokenHeader(file).ok()) return file;
  }
  return "";
}

absl::StatusOr<TokenArray> ReadTokenArray(const std::string& path,
                                          int64_t rows) {
  REQUANT_ASSIGN_OR_RETURN(const NpyHeader header, ReadTokenHeader(path));
  DatasetSpec spec;
  (*spec.mutable_numpy()->mutable_arrays())[kInput] = path;
  InputSpec& input = *spec.add_input();
  input.set_feature(kInput);
  input.set_placeholder(kInput);
  input.set_dtype("int64");
  input.add_shape(header.shape[1]);
  BatchOptions options;
  options.batch_size = std::min(rows, header.shape[0]);
  options.max_records = options.batch_size;
  REQUANT_ASSIGN_OR_RETURN(const auto source, OpenBatchSource(spec, options));
  Batch batch;
  REQUANT_ASSIGN_OR_RETURN(const bool is_there, source->Next(&batch));
  if (!is_there) {
    return absl::DataLossError(absl::StrCat(path, " has no text in it"));
  }
  return TokenArray{header.shape[0], std::move(batch.inputs.front())};
}

}  // namespace requant
