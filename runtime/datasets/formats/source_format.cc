#include "runtime/datasets/formats/source_format.h"

#include <map>

namespace requant {
namespace {

// The graph reads its files itself.
constexpr SourceFormat kInGraphFormat = {
    DatasetSpec::kInGraph,
    [](DatasetSpec* spec) { return spec->mutable_in_graph()->mutable_files(); },
    [](const DatasetSpec& spec) -> std::optional<FieldProblem> {
      if (spec.in_graph().initializer().empty()) {
        return FieldProblem{"initializer", "in_graph needs an initializer"};
      }
      if (spec.in_graph().file_name().empty()) {
        return FieldProblem{"file_name",
                            "in_graph needs a file_name placeholder"};
      }
      return std::nullopt;
    },
    /*open=*/nullptr,
    /*sample=*/nullptr};

const SourceFormat* const kFormats[] = {&kTfRecordFormat, &kCsvFormat,
                                        &kJsonlFormat, &kNumpyFormat,
                                        &kInGraphFormat};

}  // namespace

const SourceFormat* FormatOf(const DatasetSpec& spec) {
  for (const SourceFormat* format : kFormats) {
    if (format->source == spec.source_case()) return format;
  }
  return nullptr;
}

std::vector<std::string> FilesOf(const DatasetSpec& spec) {
  const SourceFormat* const format = FormatOf(spec);
  if (format == nullptr) return {};
  DatasetSpec copy = spec;
  const auto& listed = *format->files(&copy);
  std::vector<std::string> files(listed.begin(), listed.end());
  // Protobuf maps are unordered; this order is by feature.
  const auto& arrays = spec.numpy().arrays();
  for (const auto& [feature, file] :
       std::map<std::string, std::string>(arrays.begin(), arrays.end())) {
    files.push_back(file);
  }
  return files;
}

void ClearFiles(DatasetSpec* spec) {
  const SourceFormat* const format = FormatOf(*spec);
  if (format == nullptr) return;
  format->files(spec)->Clear();
  if (spec->has_label()) spec->mutable_label()->clear_vocabulary_file();
  if (!spec->has_numpy()) return;
  for (auto& [feature, file] : *spec->mutable_numpy()->mutable_arrays()) {
    file.clear();
  }
}

}  // namespace requant
