#include "runtime/datasets/guess_dataset.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/files/files.h"
#include "base/records/input_file.h"
#include "base/records/record_format.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
#include "google/protobuf/descriptor.h"
#include "graph/graph_index.h"
#include "graph/signature_names.h"
#include "graph/summary/output_ranking.h"
#include "runtime/datasets/batch_source.h"
#include "runtime/datasets/dataset_spec.h"
#include "runtime/datasets/formats/column.h"
#include "runtime/datasets/formats/feature_sample.h"
#include "runtime/datasets/formats/source_format.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace requant {
namespace {

using tensorflow::DataType;
using tensorflow::SignatureDef;
using tensorflow::Tensor;
using tensorflow::TensorInfo;

constexpr std::string_view kLabelNames[] = {"class",  "label",   "labels",
                                            "target", "targets", "y"};

// How messages name a format and its features.
struct FormatWords {
  DatasetSpec::SourceCase source;
  std::string_view format;
  std::string_view feature;
};

constexpr FormatWords kFormatWords[] = {
    {DatasetSpec::kCsv, "CSV", "column"},
    {DatasetSpec::kJsonl, "JSON lines", "key"},
    {DatasetSpec::kNumpy, "NumPy arrays", "array"},
    {DatasetSpec::kTfrecord, "TFRecord", "feature"}};

const FormatWords& WordsOf(DatasetSpec::SourceCase source) {
  return *absl::c_find_if(kFormatWords, [&](const FormatWords& words) {
    return words.source == source;
  });
}

absl::Status Unreadable(const std::string& file, std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(
      file, " ", why,
      "; CSV with a line of names, JSON lines, .npz and TFRecord files need no "
      "declaration"));
}

// Tells a file's format by its first bytes.
absl::StatusOr<DatasetSpec::SourceCase> FormatOfFile(const std::string& file) {
  constexpr size_t kHeadBytes = 1024;
  REQUANT_RETURN_IF_ERROR(CheckReadable(file));
  // What a pipe has is gone once it is read.
  REQUANT_RETURN_IF_ERROR(BytesOf(file).status());
  REQUANT_ASSIGN_OR_RETURN(const auto input, InputFile::Open(file));
  std::string head(kHeadBytes, '\0');
  const absl::StatusOr<size_t> size =
      ReadFully(input.get(), head.data(), head.size());
  if (!size.ok()) return Unreadable(file, size.status().message());
  head.resize(*size);
  if (absl::StartsWith(head, "PK\x03\x04")) return DatasetSpec::kNumpy;
  if (RecordLength(head).has_value()) return DatasetSpec::kTfrecord;
  if (absl::StartsWith(head, "\x93NUMPY")) {
    return Unreadable(file,
                      "is a single array: save all arrays in one .npz file, "
                      "under the names of the model's inputs");
  }
  if (absl::StrContains(head, '\0')) {
    return Unreadable(file, "is in no format that is known");
  }
  std::string_view text = head;
  absl::ConsumePrefix(&text, "\xef\xbb\xbf");
  text = absl::StripLeadingAsciiWhitespace(text);
  if (text.empty()) {
    return absl::NotFoundError(absl::StrCat("no records in ", file));
  }
  if (text[0] == '[') {
    return Unreadable(file, "is a JSON array, not an object per line");
  }
  return text[0] == '{' ? DatasetSpec::kJsonl : DatasetSpec::kCsv;
}

// Returns "\"a\", \"b\" and \"c\"", with the first ones of many, each with the
// candidate that it resembles, if any.
std::string ListNames(const std::vector<std::string>& names,
                      const std::vector<std::string>& candidates = {}) {
  constexpr size_t kMostNames = 12;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kMostNames; ++i) {
    const bool is_last = i + 1 == names.size() && i > 0;
    absl::StrAppend(&text,
                    i == 0    ? ""
                    : is_last ? " and "
                              : ", ",
                    "\"", names[i], "\"", DidYouMean(names[i], candidates));
  }
  if (names.size() > kMostNames) {
    absl::StrAppend(&text, " and ", names.size() - kMostNames, " more");
  }
  return text;
}

// Returns the node of "node:0".
std::string PlaceholderOf(const std::string& tensor) {
  return std::string(ParseTensorName(tensor).node);
}

// Returns whether the output has one value per record, if its shape says so.
std::optional<bool> HasOneValue(const TensorInfo& info) {
  if (info.tensor_shape().unknown_rank()) return std::nullopt;
  int64_t values = 1;
  for (int i = 1; i < info.tensor_shape().dim_size(); ++i) {
    const int64_t size = info.tensor_shape().dim(i).size();
    if (size < 0) return std::nullopt;
    if (size != 1) values = size;
  }
  return values == 1;
}

// What labels are, if they are numbers.
struct LabelValuesSeen {
  bool only_0_and_1 = true;
  bool only_whole = true;
};

LabelValuesSeen SeenIn(const Tensor& labels) {
  LabelValuesSeen seen;
  VisitType(labels.dtype(), [&](auto* type) {
    using Value = std::remove_pointer_t<decltype(type)>;
    if constexpr (!std::is_same_v<Value, tensorflow::tstring>) {
      const auto* values = static_cast<const Value*>(labels.data());
      for (int64_t i = 0; i < labels.NumElements(); ++i) {
        const double value = static_cast<double>(values[i]);
        seen.only_0_and_1 &= value == 0 || value == 1;
        seen.only_whole &= value == std::floor(value);
      }
    }
  });
  return seen;
}

class Guesser {
 public:
  Guesser(const SignatureDef& signature, const std::vector<std::string>& files,
          const GuessOptions& options)
      : options_(options),
        files_(files),
        inputs_(signature.inputs().begin(), signature.inputs().end()),
        outputs_(signature.outputs().begin(), signature.outputs().end()),
        keeps_names_(NeedsSignatureNames(signature)),
        likely_output_(LikelyPrediction(signature)) {}

  absl::StatusOr<GuessedDataset> Run() {
    REQUANT_RETURN_IF_ERROR(SampleFiles());
    REQUANT_RETURN_IF_ERROR(CheckFeatures());
    SayWhatIsRead();
    for (const auto& [name, info] : inputs_) {
      REQUANT_RETURN_IF_ERROR(AddInput(name, info));
    }
    REQUANT_RETURN_IF_ERROR(ChoosePrediction());
    ChooseLabel();
    if (IsSum()) {
      SetNumber("the prediction is a sum, so it is taken as a number");
    } else if (spec().has_label()) {
      REQUANT_RETURN_IF_ERROR(ChooseKind());
    }
    SayWhatIsNotRead();
    return std::move(guessed_);
  }

 private:
  DatasetSpec& spec() { return guessed_.spec; }
  const std::string& file() const { return files_.front(); }

  template <typename... Text>
  void Note(int field, const Text&... text) {
    guessed_.notes.push_back({field, absl::StrCat(text...)});
  }

  // Returns the error, or makes it a gap if there may be any.
  absl::Status Gap(int field, const absl::Status& why) {
    if (!options_.leaves_gaps) return why;
    guessed_.gaps.push_back({field, std::string(why.message())});
    return absl::OkStatus();
  }

  absl::Status SampleFiles() {
    if (files_.empty()) {
      words_ = &WordsOf(DatasetSpec::kCsv);
      spec().mutable_csv()->add_files(kFillIn);
      return Gap(GuessNote::kSource,
                 absl::InvalidArgumentError(
                     options_.leaves_gaps
                         ? "the files with the records; if they are not CSV, "
                           "write jsonl, numpy or tfrecord instead of csv"
                         : "there are no files to read"));
    }
    REQUANT_ASSIGN_OR_RETURN(const DatasetSpec::SourceCase source,
                             FormatOfFile(file()));
    words_ = &WordsOf(source);
    for (const std::string& other : files_) {
      REQUANT_ASSIGN_OR_RETURN(const DatasetSpec::SourceCase of_other,
                               FormatOfFile(other));
      if (of_other == source) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          file(), " is ", words_->format, " and ", other, " is ",
          WordsOf(of_other).format, ": all files must be of one format"));
    }
    // The message of the source tells which format it is.
    const auto* field = DatasetSpec::descriptor()->FindFieldByNumber(source);
    DatasetSpec::GetReflection()->MutableMessage(&spec(), field);
    const SourceFormat& format = *FormatOf(spec());
    format.files(&spec())->Assign(files_.begin(), files_.end());
    REQUANT_ASSIGN_OR_RETURN(sample_, format.sample(file()));
    if (!sample_.empty()) return absl::OkStatus();
    return absl::NotFoundError(
        absl::StrCat("no records with a ", words_->feature, " in ", file()));
  }

  std::vector<std::string> FeatureNames() const {
    std::vector<std::string> names;
    for (const auto& [name, feature] : sample_) names.push_back(name);
    return names;
  }

  // Returns whether the input is taken from a feature of its own name.
  bool HasFeature(const std::string& name) const {
    return files_.empty() || sample_.count(name) > 0;
  }

  // Fails for inputs that the file has nothing for.
  absl::Status CheckFeatures() {
    if (inputs_.empty()) {
      return absl::InvalidArgumentError(
          "the model's signature has no inputs to feed");
    }
    std::vector<std::string> missing;
    for (const auto& [name, info] : inputs_) {
      if (!HasFeature(name) && !IsSingle(info)) missing.push_back(name);
    }
    if (missing.empty()) return absl::OkStatus();
    const std::vector<std::string> names = FeatureNames();
    return Gap(
        DatasetSpec::kInputFieldNumber,
        absl::NotFoundError(absl::StrCat(
            file(), " has no ", words_->feature,
            missing.size() == 1 ? " " : "s ", ListNames(missing, names),
            " for the model's ", missing.size() == 1 ? "input" : "inputs",
            missing.size() == 1 ? " of that name" : " of these names",
            "; it has ", ListNames(names), ": rename them, or ",
            options_.leaves_gaps ? "write which feature feeds which input"
                                 : "declare by --dataset what feeds which "
                                   "input")));
  }

  static bool IsSingle(const TensorInfo& info) {
    return !info.tensor_shape().unknown_rank() &&
           info.tensor_shape().dim_size() == 0;
  }

  // Adds an input that is the same in every run, of which only the value is
  // missing.
  absl::Status AddConstant(const std::string& name, const TensorInfo& info) {
    ConstantSpec& constant = *spec().add_constant();
    constant.set_placeholder(PlaceholderName(name, info));
    constant.set_dtype(tensorflow::DataTypeString(info.dtype()));
    constant.add_value(kFillIn);
    const std::string what =
        absl::StrCat("the model's input \"", name,
                     "\" is a single value, not one per record: ");
    return Gap(DatasetSpec::kConstantFieldNumber,
               absl::InvalidArgumentError(
                   options_.leaves_gaps
                       ? absl::StrCat(what, "say which")
                       : absl::StrCat(what,
                                      "declare it by --dataset, with constant "
                                      "{ placeholder: \"",
                                      name, "\" dtype: \"", constant.dtype(),
                                      "\" value: ... }")));
  }

  // Returns what both the model and graphs that are made of it call an input.
  std::string PlaceholderName(const std::string& name,
                              const TensorInfo& info) const {
    return keeps_names_ ? name : PlaceholderOf(info.name());
  }

  // Returns "the columns \"a\" and \"b\"".
  std::string Named(const std::vector<std::string>& features) const {
    return absl::StrCat("the ", words_->feature,
                        features.size() == 1 ? " " : "s ", ListNames(features));
  }

  void SayWhatIsRead() {
    std::vector<std::string> names;
    for (const auto& [name, info] : inputs_) {
      if (HasFeature(name) && !IsSingle(info)) names.push_back(name);
    }
    const std::string read = files_.empty()
                                 ? ""
                                 : absl::StrCat(DescribeFiles(spec()),
                                                " is read as ", words_->format);
    if (names.empty()) {
      if (!read.empty()) Note(GuessNote::kSource, read);
      return;
    }
    Note(GuessNote::kSource, read, read.empty() ? "" : ", and ", Named(names),
         names.size() == 1 ? " feeds the model's input of that name"
                           : " feed the model's inputs of these names");
  }

  void SayWhatIsNotRead() {
    std::vector<std::string> names;
    for (const auto& [name, feature] : sample_) {
      if (inputs_.count(name) == 0 && name != spec().label().feature()) {
        names.push_back(name);
      }
    }
    if (names.empty()) return;
    Note(GuessNote::kSource, Named(names), names.size() == 1 ? " is" : " are",
         " not read");
  }

  absl::Status RefuseInput(const std::string& name,
                           std::string_view why) const {
    return absl::InvalidArgumentError(
        absl::StrCat("the model's input \"", name, "\" ", why,
                     options_.leaves_gaps ? "" : ": declare it by --dataset"));
  }

  // Returns a gap for the shape of the input's records.
  absl::Status OpenShape(const std::string& name, std::string_view why) {
    return Gap(DatasetSpec::kInputFieldNumber, RefuseInput(name, why));
  }

  absl::Status AddInput(const std::string& name, const TensorInfo& info) {
    const std::string dtype = tensorflow::DataTypeString(info.dtype());
    if (info.name().empty()) {
      return RefuseInput(name, "is sparse or ragged, which no file can feed");
    }
    if (!ParseDtype(dtype).ok()) {
      return RefuseInput(
          name, absl::StrCat("is of type ", dtype, ", which no file can feed"));
    }
    if (IsSingle(info)) return AddConstant(name, info);
    InputSpec& input = *spec().add_input();
    input.add_feature(HasFeature(name) ? name : kFillIn);
    input.set_placeholder(PlaceholderName(name, info));
    input.set_dtype(dtype);
    if (info.tensor_shape().unknown_rank()) {
      input.add_shape(-1);
      return OpenShape(name, "has no known shape");
    }
    const int64_t batch = info.tensor_shape().dim(0).size();
    if (batch >= 0) {
      Note(DatasetSpec::kInputFieldNumber, "the model's input \"", name,
           "\" takes batches of ", batch,
           " records only, so that --batch_size=", batch, " is needed");
    }
    return FillShape(name, info, &input);
  }

  // Sets the shape of a record, with open dimensions as in the first records.
  absl::Status FillShape(const std::string& name, const TensorInfo& info,
                         InputSpec* input) {
    const auto sampled = sample_.find(name);
    const FeatureSample feature =
        sampled == sample_.end() ? FeatureSample() : sampled->second;
    const auto& dims = info.tensor_shape().dim();
    const auto& own = feature.shape;
    int open = 0;
    int64_t known = 1;
    for (int i = 1; i < dims.size(); ++i) {
      input->add_shape(dims[i].size());
      open += dims[i].size() < 0;
      if (dims[i].size() > 0 && known <= kMaxElements / dims[i].size()) {
        known *= dims[i].size();
      }
    }
    if (open == 0) return absl::OkStatus();
    const bool has_shape =
        own.has_value() && own->size() == static_cast<size_t>(dims.size() - 1);
    if (!has_shape &&
        (open > 1 || feature.elements < 1 || feature.elements % known != 0)) {
      const std::string open_shape = absl::StrCat(
          "has the shape [?, ", absl::StrJoin(input->shape(), ", "),
          "], where -1 is open");
      if (sampled == sample_.end()) return OpenShape(name, open_shape);
      return OpenShape(
          name, absl::StrCat(open_shape, ", and the first records of ", file(),
                             feature.elements < 0
                                 ? " have different numbers of values for it"
                                 : " do not tell the rest"));
    }
    for (int i = 1; i < dims.size(); ++i) {
      if (dims[i].size() >= 0) continue;
      input->set_shape(i - 1,
                       has_shape ? (*own)[i - 1] : feature.elements / known);
    }
    Note(DatasetSpec::kInputFieldNumber, "the model leaves the shape of \"",
         name, "\" open, which is [", absl::StrJoin(input->shape(), ", "),
         "] in the first records");
    return absl::OkStatus();
  }

  absl::Status ChoosePrediction() {
    PredictionSpec& prediction = *spec().mutable_prediction();
    if (!options_.output.empty()) {
      prediction.set_tensor(options_.output);
      const auto output = outputs_.find(options_.output);
      if (output != outputs_.end()) prediction_ = &output->second;
      return absl::OkStatus();
    }
    std::vector<std::string> others;
    for (const auto& [name, info] : outputs_) {
      if (name != likely_output_) others.push_back(name);
    }
    if (!likely_output_.empty()) {
      const std::string& name = likely_output_;
      prediction_ = &outputs_.at(name);
      prediction.set_tensor(keeps_names_ ? name : prediction_->name());
      Note(DatasetSpec::kPredictionFieldNumber, "the ",
           others.empty() ? "model's output" : "output", " \"", name,
           "\" is taken as the prediction",
           others.empty() ? "" : "; the model also has ", ListNames(others));
      return absl::OkStatus();
    }
    if (options_.needs_prediction) {
      prediction.set_tensor(kFillIn);
      return Gap(
          DatasetSpec::kPredictionFieldNumber,
          absl::InvalidArgumentError(absl::StrCat(
              "which of the model's outputs ", ListNames(others),
              " is the prediction?",
              options_.leaves_gaps
                  ? ""
                  : absl::StrCat(" Name it by ", options_.output_flag))));
    }
    spec().clear_prediction();
    return absl::OkStatus();
  }

  bool IsLabelName(const std::string& name) const {
    const std::string lower = absl::AsciiStrToLower(name);
    return absl::c_linear_search(kLabelNames, lower) ||
           (options_.output.empty() && !likely_output_.empty() &&
            lower == absl::AsciiStrToLower(likely_output_));
  }

  void ChooseLabel() {
    if (files_.empty()) return;
    std::vector<std::string> names;
    for (const auto& [name, feature] : sample_) {
      if (inputs_.count(name) == 0 && IsLabelName(name)) names.push_back(name);
    }
    if (names.empty()) {
      return NoLabel(absl::StrCat("no ", words_->feature,
                                  " is named like a label (label, target, y, "
                                  "class or the prediction's name)"));
    }
    if (names.size() > 1) {
      return NoLabel(absl::StrCat("several ", words_->feature,
                                  "s are named like a label (",
                                  ListNames(names), ")"));
    }
    const std::string& name = names.front();
    const FeatureSample& feature = sample_.at(name);
    if (feature.dtype == tensorflow::DT_STRING) {
      return NoLabel(absl::StrCat(
          "\"", name,
          "\" has texts, whose classes only the vocabulary of a label { } in a "
          "declaration can tell"));
    }
    if (feature.dtype == tensorflow::DT_INVALID || feature.elements != 1) {
      return NoLabel(
          absl::StrCat("\"", name, "\" does not have one value per record"));
    }
    spec().mutable_label()->set_feature(name);
    spec().mutable_label()->set_dtype(
        tensorflow::DataTypeString(feature.dtype));
    Note(DatasetSpec::kLabelFieldNumber, "the ", words_->feature, " \"", name,
         "\" is taken as the label");
  }

  void NoLabel(std::string_view why) {
    Note(DatasetSpec::kLabelFieldNumber,
         "there is no label, and so no accuracy: ", why);
  }

  // Returns whether the prediction is one value per record that is a sum.
  bool IsSum() const {
    return prediction_ != nullptr &&
           HasOneValue(*prediction_).value_or(false) &&
           absl::c_any_of(options_.sums, [&](const std::string& name) {
             const auto output = outputs_.find(name);
             return output != outputs_.end() && &output->second == prediction_;
           });
  }

  void SetNumber(std::string_view why) {
    spec().mutable_prediction()->set_kind(PredictionSpec::VALUE);
    Note(DatasetSpec::kPredictionFieldNumber, why,
         spec().has_label() ? " that is compared with the labels by RMSE" : "");
  }

  // Takes the prediction as a number, not as a probability, if the labels are
  // no classes.
  absl::Status ChooseKind() {
    // Without its inputs no record can be read.
    if (!guessed_.gaps.empty()) return absl::OkStatus();
    BatchOptions batching;
    batching.batch_size = kSampledRecords;
    batching.max_records = kSampledRecords;
    batching.max_bad_records = kSampledRecords;
    batching.threads = 1;
    REQUANT_ASSIGN_OR_RETURN(const std::unique_ptr<BatchSource> source,
                             OpenBatchSource(spec(), batching));
    Batch batch;
    // Whoever reads the records reports what is wrong with them.
    if (!source->Next(&batch).value_or(false)) return absl::OkStatus();
    const LabelValuesSeen seen = SeenIn(batch.labels);
    const std::optional<bool> one =
        prediction_ == nullptr ? std::nullopt : HasOneValue(*prediction_);
    const bool is_number =
        one.has_value() ? *one && !seen.only_0_and_1 : !seen.only_whole;
    if (!is_number) return absl::OkStatus();
    SetNumber(
        "the labels are no classes, so the prediction is taken as a number");
    return absl::OkStatus();
  }

  const GuessOptions& options_;
  const std::vector<std::string>& files_;
  // Protobuf maps are unordered.
  const std::map<std::string, TensorInfo> inputs_;
  const std::map<std::string, TensorInfo> outputs_;
  // Whether graphs that are made of the model have the signature's names.
  const bool keeps_names_;
  const std::string likely_output_;
  const FormatWords* words_ = nullptr;
  FileSample sample_;
  // The output that is the prediction, unless it is unknown.
  const TensorInfo* prediction_ = nullptr;
  GuessedDataset guessed_;
};

}  // namespace

absl::StatusOr<GuessedDataset> GuessDataset(
    const SignatureDef& signature, const std::vector<std::string>& files,
    const GuessOptions& options) {
  return Guesser(signature, files, options).Run();
}

}  // namespace requant
