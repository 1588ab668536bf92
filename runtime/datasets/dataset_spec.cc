#include "runtime/datasets/dataset_spec.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "base/files/files.h"
#include "base/message/text_proto.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "runtime/datasets/formats/column.h"
#include "runtime/datasets/formats/source_format.h"

namespace requant {
namespace {

using google::protobuf::RepeatedPtrField;

// A declaration has a few lines; anything larger is some other file.
constexpr int64_t kMaxDeclarationBytes = 16 << 20;

// Returns "path:line", or the path alone if the line is unknown (0).
std::string Place(const std::string& path, int line) {
  return line == 0 ? path : absl::StrCat(path, ":", line);
}

// A message of the declaration and where its fields are in the text.
class Block {
 public:
  Block(const std::string& path, const FieldPlaces& places)
      : path_(path), places_(places) {}

  Block Nested(const std::string& field, int index = -1) const {
    return Block(path_, places_.Nested(field, index));
  }

  // Returns `status` with the place of the field, or of the block if the text
  // has no such field. OK stays OK.
  absl::Status At(const std::string& field, const absl::Status& status,
                  int index = -1) const {
    if (status.ok()) return status;
    return absl::Status(status.code(),
                        absl::StrCat(Place(path_, places_.Line(field, index)),
                                     ": ", status.message()));
  }
  absl::Status Refuse(const std::string& field, std::string_view why,
                      int index = -1) const {
    return At(field, absl::InvalidArgumentError(why), index);
  }

 private:
  const std::string path_;
  const FieldPlaces places_;
};

Block Root(const std::string& path, const FieldPlaces::Tree* tree) {
  return Block(path, FieldPlaces(DatasetSpec::descriptor(), tree, /*line=*/0));
}

std::string_view PlaceholderNode(std::string_view placeholder) {
  absl::ConsumeSuffix(&placeholder, ":0");
  return placeholder;
}

// Checks the name of a placeholder that `what`, such as "an input", feeds.
absl::Status CheckPlaceholder(const std::string& placeholder,
                              std::string_view what, const Block& block) {
  const std::string_view node = PlaceholderNode(placeholder);
  if (node.empty()) {
    return block.Refuse("placeholder",
                        absl::StrCat(what, " has no placeholder"));
  }
  if (!absl::StrContains(node, ':') && node[0] != '^') {
    return absl::OkStatus();
  }
  return block.Refuse(
      "placeholder",
      absl::StrCat("\"", placeholder,
                   "\" is no placeholder: write \"name\" or \"name:0\""));
}

// Checks the features of an input whose records have `elements` elements.
absl::Status CheckFeatures(const InputSpec& input, int64_t elements,
                           const Block& block) {
  std::set<std::string_view> names;
  for (int i = 0; i < input.feature_size(); ++i) {
    if (input.feature(i).empty()) {
      return block.Refuse("feature", "a feature has no name", i);
    }
    if (!names.insert(input.feature(i)).second) {
      return block.Refuse("feature",
                          absl::StrCat("feature \"", input.feature(i),
                                       "\" is joined with itself"),
                          i);
    }
  }
  if (input.feature_size() < 2 || input.feature_size() == elements) {
    return absl::OkStatus();
  }
  return block.Refuse(
      "shape",
      absl::StrCat("an input of ", input.feature_size(),
                   " features, which are one value each, has a shape of as "
                   "many elements, such as shape: ",
                   input.feature_size(), ", not of ", elements));
}

absl::Status CheckInput(const InputSpec& input, const Block& block) {
  if (input.feature().empty()) {
    return block.Refuse("feature", "an input has no feature");
  }
  REQUANT_RETURN_IF_ERROR(
      CheckPlaceholder(input.placeholder(), "an input", block));
  const auto dtype = ParseDtype(input.dtype());
  REQUANT_RETURN_IF_ERROR(block.At("dtype", dtype.status()));
  const auto elements = CountElements(input.shape());
  REQUANT_RETURN_IF_ERROR(block.At("shape", elements.status()));
  REQUANT_RETURN_IF_ERROR(CheckFeatures(input, *elements, block));
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

absl::Status CheckConstant(const ConstantSpec& constant, const Block& block) {
  REQUANT_RETURN_IF_ERROR(
      CheckPlaceholder(constant.placeholder(), "a constant", block));
  REQUANT_RETURN_IF_ERROR(
      block.At("dtype", ParseDtype(constant.dtype()).status()));
  REQUANT_RETURN_IF_ERROR(
      block.At("shape", CountElements(constant.shape()).status()));
  return block.At("value", ConstantTensor(constant).status());
}

absl::Status CheckInputs(const DatasetSpec& spec, const Block& root) {
  std::set<std::string_view> placeholders;
  const auto add = [&](const std::string& placeholder, const Block& block) {
    if (placeholders.insert(PlaceholderNode(placeholder)).second) {
      return absl::OkStatus();
    }
    return block.Refuse(
        "placeholder",
        absl::StrCat("placeholder \"", placeholder, "\" is fed twice"));
  };
  for (int i = 0; i < spec.input_size(); ++i) {
    const Block block = root.Nested("input", i);
    REQUANT_RETURN_IF_ERROR(CheckInput(spec.input(i), block));
    REQUANT_RETURN_IF_ERROR(add(spec.input(i).placeholder(), block));
  }
  for (int i = 0; i < spec.constant_size(); ++i) {
    const Block block = root.Nested("constant", i);
    REQUANT_RETURN_IF_ERROR(CheckConstant(spec.constant(i), block));
    REQUANT_RETURN_IF_ERROR(add(spec.constant(i).placeholder(), block));
  }
  return absl::OkStatus();
}

absl::Status CheckVocabulary(const LabelSpec& label, const Block& block) {
  if (label.vocabulary_size() > 0 && !label.vocabulary_file().empty()) {
    return block.Refuse("vocabulary_file",
                        "the label has both a vocabulary and a "
                        "vocabulary_file; give one of them");
  }
  std::set<std::string_view> known;
  for (int i = 0; i < label.vocabulary_size(); ++i) {
    if (!known.insert(label.vocabulary(i)).second) {
      return block.Refuse("vocabulary",
                          absl::StrCat("\"", label.vocabulary(i),
                                       "\" is twice in the vocabulary"),
                          i);
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
  const bool has_vocabulary =
      label.vocabulary_size() > 0 || !label.vocabulary_file().empty();
  if (*dtype == tensorflow::DT_STRING && !has_vocabulary) {
    return block.Refuse(
        "dtype",
        "labels are numbers, such as int64: a label of dtype string cannot be "
        "scored without a vocabulary, which lists the texts of the classes");
  }
  if (*dtype != tensorflow::DT_STRING && has_vocabulary) {
    return block.Refuse("dtype",
                        "a label with a vocabulary is of dtype string");
  }
  REQUANT_RETURN_IF_ERROR(CheckVocabulary(label, block));
  return block.At("shape", CountElements(label.shape()).status());
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

// Returns the source's name in DatasetSpec, which must have one.
std::string SourceName(const DatasetSpec& spec) {
  return std::string(
      DatasetSpec::descriptor()->FindFieldByNumber(spec.source_case())->name());
}

absl::Status CheckSource(const DatasetSpec& spec, const Block& root) {
  const SourceFormat* const format = FormatOf(spec);
  if (format == nullptr) {
    const auto& sources = *DatasetSpec::descriptor()->oneof_decl(0);
    std::string names(sources.field(0)->name());
    for (int i = 1; i < sources.field_count(); ++i) {
      absl::StrAppend(&names, i + 1 < sources.field_count() ? ", " : " or ",
                      sources.field(i)->name());
    }
    return root.Refuse("input", absl::StrCat("no source: add ", names));
  }
  if (format->check == nullptr) return absl::OkStatus();
  const std::optional<FieldProblem> problem = format->check(spec);
  if (!problem.has_value()) return absl::OkStatus();
  return root.Nested(SourceName(spec))
      .Refuse(problem->field, problem->sentence, problem->index);
}

absl::Status CheckSpec(const DatasetSpec& spec, const Block& root) {
  REQUANT_RETURN_IF_ERROR(CheckSource(spec, root));
  if (spec.input_size() == 0 && !spec.has_in_graph()) {
    return root.Refuse("input", "no inputs: add one input per placeholder");
  }
  REQUANT_RETURN_IF_ERROR(CheckInputs(spec, root));
  REQUANT_RETURN_IF_ERROR(
      CheckPrediction(spec.prediction(), root.Nested("prediction")));
  if (!spec.has_label()) return absl::OkStatus();
  return CheckLabel(spec.label(), root.Nested("label"));
}

bool IsDirectory(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

// Returns `folder` escaped for glob(), which must not read it as a pattern.
std::string Escaped(std::string_view folder) {
  std::string escaped;
  for (const char c : folder) {
    if (absl::StrContains("*?[]\\", c)) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// Returns the files that `pattern` means below `folder` ("" or with a slash at
// its end).
absl::StatusOr<std::vector<std::string>> Expand(const std::string& pattern,
                                                std::string folder) {
  if (absl::StartsWith(pattern, "/")) folder = "";
  if (pattern.empty()) return absl::InvalidArgumentError("a file has no name");
  std::error_code error;
  if (std::filesystem::exists(folder + pattern, error)) {
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
  // The names are sorted, so that the first error is always the same.
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

// Returns the folder of the declaration, "" or with a slash at its end.
std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

// Reads the vocabulary's file, a text per line, into the label.
absl::Status ReadVocabularyFile(const std::string& file, LabelSpec* label) {
  REQUANT_ASSIGN_OR_RETURN(const std::string content,
                           ReadFile(file, kMaxDeclarationBytes));
  std::map<std::string_view, int> lines;
  std::vector<std::string_view> texts = absl::StrSplit(content, '\n');
  if (texts.back().empty()) texts.pop_back();
  for (std::string_view text : texts) {
    absl::ConsumeSuffix(&text, "\r");
    const int line = label->vocabulary_size() + 1;
    const auto [first, is_new] = lines.emplace(text, line);
    if (text.empty() || !is_new) {
      return absl::InvalidArgumentError(absl::StrCat(
          file, ":", line, ": ",
          text.empty() ? "a line of a vocabulary is empty"
                       : absl::StrCat("\"", text, "\" is also in line ",
                                      first->second)));
    }
    label->add_vocabulary(text);
  }
  if (!texts.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(file, " is empty; a vocabulary has a text per line"));
}

// Reads the vocabulary that the declaration names a file of, and replaces the
// file's name by its path.
absl::Status ResolveVocabulary(const std::string& path, const Block& root,
                               DatasetSpec* spec) {
  if (spec->label().vocabulary_file().empty()) return absl::OkStatus();
  LabelSpec& label = *spec->mutable_label();
  if (!absl::StartsWith(label.vocabulary_file(), "/")) {
    label.set_vocabulary_file(FolderOf(path) + label.vocabulary_file());
  }
  return root.Nested("label").At(
      "vocabulary_file", ReadVocabularyFile(label.vocabulary_file(), &label));
}

// Replaces names and globs with the paths of existing files.
absl::Status ResolveFiles(const std::string& path, const Block& block,
                          DatasetSpec* spec) {
  const std::string folder = FolderOf(path);
  RepeatedPtrField<std::string>* const files = FormatOf(*spec)->files(spec);
  REQUANT_RETURN_IF_ERROR(ExpandFiles(folder, block, files));
  const bool has_arrays = spec->has_numpy() && !spec->numpy().arrays().empty();
  if (files->empty() && !has_arrays) {
    return block.Refuse("files", "the source names no files");
  }
  if (!has_arrays) return absl::OkStatus();
  return ExpandArrays(folder, block, spec->mutable_numpy());
}

// Replaces the declaration's files with `replacements`.
absl::Status ReplaceFiles(const std::vector<std::string>& replacements,
                          DatasetSpec* spec) {
  if (spec->has_numpy()) spec->mutable_numpy()->clear_arrays();
  REQUANT_ASSIGN_OR_RETURN(const std::vector<std::string> found,
                           ExistingFiles(replacements));
  RepeatedPtrField<std::string>* const files = FormatOf(*spec)->files(spec);
  files->Assign(found.begin(), found.end());
  return absl::OkStatus();
}

// Fails if a line of the text has yet to be filled in.
absl::Status CheckFilledIn(const std::string& path, std::string_view text) {
  const std::string gap = absl::StrCat("\"", kFillIn, "\"");
  int number = 0;
  for (const std::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (!absl::StrContains(line.substr(0, line.find('#')), gap)) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        Place(path, number), ": ", gap,
        " has yet to be filled in; the comments there say with what"));
  }
  return absl::OkStatus();
}

absl::StatusOr<DatasetSpec> ParseSpec(const std::string& path,
                                      FieldPlaces::Tree* tree) {
  REQUANT_ASSIGN_OR_RETURN(const std::string text,
                           ReadFile(path, kMaxDeclarationBytes));
  DatasetSpec spec;
  absl::Status first;
  const auto on_problem = [&](int line, int, std::string_view message) {
    if (!first.ok()) return;
    const auto unknown = FindUnknownField(message, *DatasetSpec::descriptor());
    first = absl::InvalidArgumentError(absl::StrCat(
        Place(path, line), ": ",
        unknown.has_value()
            ? absl::StrCat(unknown->sentence,
                           DidYouMean(unknown->name, unknown->known))
            : std::string(message)));
  };
  TextProtoOptions options;
  options.places = tree;
  if (!ParseTextProto(text, options, on_problem, &spec)) {
    if (!first.ok()) return first;
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is not a dataset declaration"));
  }
  REQUANT_RETURN_IF_ERROR(CheckFilledIn(path, text));
  REQUANT_RETURN_IF_ERROR(CheckSpec(spec, Root(path, tree)));
  REQUANT_RETURN_IF_ERROR(ResolveVocabulary(path, Root(path, tree), &spec));
  return spec;
}

}  // namespace

absl::StatusOr<DatasetSpec> ReadDatasetSpec(
    const std::string& path, const std::vector<std::string>& files) {
  FieldPlaces::Tree tree;
  REQUANT_ASSIGN_OR_RETURN(DatasetSpec spec, ParseSpec(path, &tree));
  REQUANT_RETURN_IF_ERROR(
      files.empty()
          ? ResolveFiles(path, Root(path, &tree).Nested(SourceName(spec)),
                         &spec)
          : ReplaceFiles(files, &spec));
  return spec;
}

absl::StatusOr<std::vector<std::string>> ExistingFiles(
    const std::vector<std::string>& names) {
  std::vector<std::string> files;
  for (const std::string& name : names) {
    REQUANT_ASSIGN_OR_RETURN(const std::vector<std::string> found,
                             Expand(name, ""));
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

absl::StatusOr<DatasetSpec> ReadDatasetDeclaration(const std::string& path) {
  FieldPlaces::Tree tree;
  return ParseSpec(path, &tree);
}

}  // namespace requant
