#include "runtime/datasets/dataset_spec.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "base/files/matching_files.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "google/protobuf/text_format.h"
#include "runtime/datasets/formats/column.h"

namespace requant {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::RepeatedPtrField;
using google::protobuf::TextFormat;

// A declaration is a few lines; anything larger is another file.
constexpr int64_t kMaxDeclarationBytes = 16 << 20;
constexpr int kMaxNesting = 20;

// "path:line", or the path alone when the line is not known.
std::string Place(const std::string& path, int line) {
  return line < 0 ? path : absl::StrCat(path, ":", line + 1);
}

// For an unknown field, the parser's message with the field that was meant.
std::string Explain(std::string_view message) {
  const std::vector<std::string_view> parts = absl::StrSplit(message, '"');
  if (parts.size() < 4 || !absl::StrContains(parts[2], "no field named")) {
    return std::string(message);
  }
  const Descriptor* const type =
      DatasetSpec::descriptor()->file()->pool()->FindMessageTypeByName(
          std::string(parts[1]));
  if (type == nullptr) return std::string(message);
  std::vector<std::string> names;
  for (int i = 0; i < type->field_count(); ++i) {
    names.emplace_back(type->field(i)->name());
  }
  return absl::StrCat(type->name(), " has no field \"", parts[3], "\"",
                      DidYouMean(parts[3], names));
}

class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  explicit FirstError(const std::string& path) : path_(path) {}

  void RecordError(int line, google::protobuf::io::ColumnNumber column,
                   absl::string_view message) override {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(
        absl::StrCat(Place(path_, line), ": ", Explain(message)));
  }
  // Deprecated spellings and the like; nothing to tell.
  void RecordWarning(int, google::protobuf::io::ColumnNumber,
                     absl::string_view) override {}

  const absl::Status& status() const { return status_; }

 private:
  const std::string path_;
  absl::Status status_;
};

// A message of the declaration and where its fields are in the text.
class Block {
 public:
  Block(const std::string& path, const Descriptor* type,
        const TextFormat::ParseInfoTree* tree, int line)
      : path_(path), type_(type), tree_(tree), line_(line) {}

  Block Nested(const std::string& field, int index = -1) const {
    const FieldDescriptor* const descriptor = type_->FindFieldByName(field);
    return Block(
        path_, descriptor->message_type(),
        tree_ == nullptr ? nullptr : tree_->GetTreeForNested(descriptor, index),
        Line(field, index));
  }

  // `status` with the place of the field, or of the block when the text has no
  // such field. OK stays OK.
  absl::Status At(const std::string& field, const absl::Status& status,
                  int index = -1) const {
    if (status.ok()) return status;
    return absl::Status(
        status.code(),
        absl::StrCat(Place(path_, Line(field, index)), ": ", status.message()));
  }
  absl::Status Refuse(const std::string& field, std::string_view why,
                      int index = -1) const {
    return At(field, absl::InvalidArgumentError(why), index);
  }

 private:
  int Line(const std::string& field, int index) const {
    if (tree_ == nullptr) return line_;
    const FieldDescriptor* const descriptor = type_->FindFieldByName(field);
    if (descriptor->is_repeated() && index < 0) index = 0;
    const int line = tree_->GetLocation(descriptor, index).line;
    return line < 0 ? line_ : line;
  }

  const std::string path_;
  const Descriptor* const type_;
  const TextFormat::ParseInfoTree* const tree_;
  const int line_;
};

std::string_view PlaceholderNode(std::string_view placeholder) {
  absl::ConsumeSuffix(&placeholder, ":0");
  return placeholder;
}

absl::Status CheckInput(const InputSpec& input, const Block& block) {
  if (input.feature().empty()) {
    return block.Refuse("feature", "an input has no feature");
  }
  const std::string_view node = PlaceholderNode(input.placeholder());
  if (node.empty()) {
    return block.Refuse("placeholder", "an input has no placeholder");
  }
  if (absl::StrContains(node, ':') || node[0] == '^') {
    return block.Refuse("placeholder",
                        absl::StrCat("\"", input.placeholder(),
                                     "\" is no placeholder: write \"name\" or "
                                     "\"name:0\""));
  }
  const auto dtype = ParseDtype(input.dtype());
  REQUANT_RETURN_IF_ERROR(block.At("dtype", dtype.status()));
  const auto elements = CountElements(input.shape());
  REQUANT_RETURN_IF_ERROR(block.At("shape", elements.status()));
  if (input.feed_shape_size() > 0) {
    REQUANT_RETURN_IF_ERROR(
        block.At("feed_shape", CheckFeedShape(input.feed_shape(), *elements)));
  }
  if (!input.has_default_value()) return absl::OkStatus();
  const absl::Status status =
      ParseScalar(input.default_value(), *dtype).status();
  if (status.ok()) return status;
  return block.Refuse("default_value",
                      absl::StrCat("default_value ", status.message()));
}

absl::Status CheckInputs(const DatasetSpec& spec, const Block& root) {
  std::map<std::string_view, int> placeholders;
  for (int i = 0; i < spec.input_size(); ++i) {
    const Block block = root.Nested("input", i);
    REQUANT_RETURN_IF_ERROR(CheckInput(spec.input(i), block));
    const std::string& placeholder = spec.input(i).placeholder();
    if (!placeholders.emplace(PlaceholderNode(placeholder), i).second) {
      return block.Refuse(
          "placeholder",
          absl::StrCat("placeholder \"", placeholder, "\" is fed twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckLabel(const LabelSpec& label, const Block& block) {
  if (label.feature().empty()) {
    return block.Refuse("feature", "the label has no feature");
  }
  const auto dtype = ParseDtype(label.dtype());
  REQUANT_RETURN_IF_ERROR(block.At("dtype", dtype.status()));
  if (*dtype == tensorflow::DT_STRING) {
    return block.Refuse("dtype",
                        "labels are numbers, such as int64: a label of dtype "
                        "string cannot be scored");
  }
  return block.At("shape", CountElements(label.shape()).status());
}

absl::Status CheckInGraph(const InGraphSource& source, const Block& block) {
  if (source.initializer().empty()) {
    return block.Refuse("initializer", "in_graph needs an initializer");
  }
  if (source.file_name().empty()) {
    return block.Refuse("file_name", "in_graph needs a file_name placeholder");
  }
  return absl::OkStatus();
}

absl::Status CheckCsv(const CsvSource& source, const Block& block) {
  if (source.delimiter().size() > 1) {
    return block.Refuse("delimiter",
                        absl::StrCat("delimiter \"", source.delimiter(),
                                     "\" is not one character"));
  }
  if (absl::StrContains("\"\r\n", source.delimiter()) &&
      !source.delimiter().empty()) {
    return block.Refuse("delimiter",
                        "a quote or line break cannot be the delimiter");
  }
  std::map<std::string_view, int> columns;
  for (int i = 0; i < source.columns_size(); ++i) {
    if (!columns.emplace(source.columns(i), i).second) {
      return block.Refuse(
          "columns",
          absl::StrCat("column \"", source.columns(i), "\" is named twice"), i);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPrediction(const PredictionSpec& prediction,
                             const Block& block) {
  const bool compares = prediction.kind() == PredictionSpec::KIND_AUTO ||
                        prediction.kind() == PredictionSpec::PROBABILITY;
  if (compares || prediction.threshold() == 0) return absl::OkStatus();
  return block.Refuse(
      "threshold",
      absl::StrCat("threshold is for kind PROBABILITY, one value per record; ",
                   "kind ", PredictionSpec::Kind_Name(prediction.kind()),
                   " does not use it"));
}

absl::Status CheckSpec(const DatasetSpec& spec, const Block& root) {
  switch (spec.source_case()) {
    case DatasetSpec::SOURCE_NOT_SET:
      return root.Refuse("input",
                         "no source: add tfrecord, csv, numpy or in_graph");
    case DatasetSpec::kInGraph:
      REQUANT_RETURN_IF_ERROR(
          CheckInGraph(spec.in_graph(), root.Nested("in_graph")));
      break;
    case DatasetSpec::kCsv:
      REQUANT_RETURN_IF_ERROR(CheckCsv(spec.csv(), root.Nested("csv")));
      break;
    default:
      break;
  }
  if (spec.input_size() == 0 && spec.source_case() != DatasetSpec::kInGraph) {
    return root.Refuse("input", "no inputs: add one input per placeholder");
  }
  REQUANT_RETURN_IF_ERROR(CheckInputs(spec, root));
  REQUANT_RETURN_IF_ERROR(
      CheckPrediction(spec.prediction(), root.Nested("prediction")));
  if (!spec.has_label()) return absl::OkStatus();
  return CheckLabel(spec.label(), root.Nested("label"));
}

bool Exists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

bool IsDirectory(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// `folder` for glob(), which must not take its name for a pattern.
std::string Escaped(std::string_view folder) {
  std::string escaped;
  for (const char c : folder) {
    if (absl::StrContains("*?[]\\", c)) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// The files that `pattern` means below `folder` ("" or with a slash at its
// end).
absl::StatusOr<std::vector<std::string>> Expand(const std::string& pattern,
                                                std::string folder) {
  if (absl::StartsWith(pattern, "/")) folder = "";
  if (pattern.empty()) return absl::InvalidArgumentError("a file has no name");
  if (Exists(folder + pattern)) {
    return std::vector<std::string>{folder + pattern};
  }
  std::vector<std::string> files = MatchingFiles(Escaped(folder) + pattern);
  files.erase(std::remove_if(files.begin(), files.end(), IsDirectory),
              files.end());
  if (files.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no file matches ", folder, pattern));
  }
  return files;
}

absl::Status ExpandFiles(const std::string& folder, const Block& block,
                         RepeatedPtrField<std::string>* files) {
  RepeatedPtrField<std::string> expanded;
  for (int i = 0; i < files->size(); ++i) {
    const auto found = Expand(files->Get(i), folder);
    REQUANT_RETURN_IF_ERROR(block.At("files", found.status(), i));
    for (const std::string& file : *found) *expanded.Add() = file;
  }
  files->Swap(&expanded);
  return absl::OkStatus();
}

absl::Status ExpandArrays(const std::string& folder, const Block& block,
                          NumpySource* numpy) {
  // In the order of their names, so that the first error is always the same.
  std::map<std::string, std::string> arrays(numpy->arrays().begin(),
                                            numpy->arrays().end());
  for (const auto& [feature, file] : arrays) {
    const auto found = Expand(file, folder);
    REQUANT_RETURN_IF_ERROR(block.At("arrays", found.status()));
    if (found->size() != 1) {
      return block.Refuse(
          "arrays", absl::StrCat("feature \"", feature, "\" is one .npy file; ",
                                 file, " matches ", found->size()));
    }
    (*numpy->mutable_arrays())[feature] = found->front();
  }
  return absl::OkStatus();
}

RepeatedPtrField<std::string>* Files(DatasetSpec* spec) {
  switch (spec->source_case()) {
    case DatasetSpec::kTfrecord:
      return spec->mutable_tfrecord()->mutable_files();
    case DatasetSpec::kCsv:
      return spec->mutable_csv()->mutable_files();
    case DatasetSpec::kNumpy:
      return spec->mutable_numpy()->mutable_files();
    default:
      return spec->mutable_in_graph()->mutable_files();
  }
}

// Puts the paths of existing files where names and globs are.
absl::Status ResolveFiles(const std::string& path, const Block& block,
                          DatasetSpec* spec) {
  const size_t slash = path.rfind('/');
  const std::string folder =
      slash == std::string::npos ? "" : path.substr(0, slash + 1);
  RepeatedPtrField<std::string>* const files = Files(spec);
  REQUANT_RETURN_IF_ERROR(ExpandFiles(folder, block, files));
  const bool has_arrays = spec->has_numpy() && !spec->numpy().arrays().empty();
  if (files->empty() && !has_arrays) {
    return block.Refuse("files", "the source names no files");
  }
  if (!has_arrays) return absl::OkStatus();
  return ExpandArrays(folder, block, spec->mutable_numpy());
}

// Puts `replacements` where the declaration's files are.
absl::Status ReplaceFiles(const std::vector<std::string>& replacements,
                          DatasetSpec* spec) {
  if (spec->has_numpy()) spec->mutable_numpy()->clear_arrays();
  RepeatedPtrField<std::string>* const files = Files(spec);
  files->Clear();
  for (const std::string& replacement : replacements) {
    REQUANT_ASSIGN_OR_RETURN(const std::vector<std::string> found,
                             Expand(replacement, ""));
    for (const std::string& file : found) *files->Add() = file;
  }
  return absl::OkStatus();
}

absl::StatusOr<DatasetSpec> ParseSpec(const std::string& path,
                                      TextFormat::ParseInfoTree* tree) {
  REQUANT_ASSIGN_OR_RETURN(const std::string text,
                           ReadFile(path, kMaxDeclarationBytes));
  DatasetSpec spec;
  FirstError error(path);
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.WriteLocationsTo(tree);
  parser.SetRecursionLimit(kMaxNesting);
  if (!parser.ParseFromString(text, &spec)) {
    if (!error.status().ok()) return error.status();
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is not a dataset declaration"));
  }
  REQUANT_RETURN_IF_ERROR(
      CheckSpec(spec, Block(path, DatasetSpec::descriptor(), tree, -1)));
  return spec;
}

absl::StatusOr<DatasetSpec> ReadSpec(const std::string& path,
                                     const std::vector<std::string>& files) {
  TextFormat::ParseInfoTree tree;
  REQUANT_ASSIGN_OR_RETURN(DatasetSpec spec, ParseSpec(path, &tree));
  if (!files.empty()) {
    REQUANT_RETURN_IF_ERROR(ReplaceFiles(files, &spec));
    return spec;
  }
  const FieldDescriptor* const source =
      DatasetSpec::descriptor()->FindFieldByNumber(spec.source_case());
  const Block root(path, DatasetSpec::descriptor(), &tree, -1);
  REQUANT_RETURN_IF_ERROR(
      ResolveFiles(path, root.Nested(std::string(source->name())), &spec));
  return spec;
}

}  // namespace

absl::StatusOr<DatasetSpec> ReadDatasetSpec(
    const std::string& path, const std::vector<std::string>& files) {
  return ReadSpec(path, files);
}

absl::StatusOr<DatasetSpec> ReadDatasetDeclaration(const std::string& path) {
  TextFormat::ParseInfoTree tree;
  return ParseSpec(path, &tree);
}

}  // namespace requant
