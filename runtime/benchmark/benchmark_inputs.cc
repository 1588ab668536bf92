#include "runtime/benchmark/benchmark_inputs.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/records/input_file.h"
#include "base/status_macros.h"
#include "runtime/datasets/formats/column.h"
#include "runtime/datasets/formats/npy.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"

namespace requant {
namespace {

namespace fs = std::filesystem;
using tensorflow::DataType;
using tensorflow::SignatureDef;
using tensorflow::Tensor;
using tensorflow::TensorInfo;
using tensorflow::TensorShape;

constexpr char kLogits[] = "logits";
constexpr char kTokens[] = "input_ids";
constexpr int64_t kIdsOfUnknownVocabulary = 32;

// Nobody measures larger batches.
constexpr int64_t kMostElements = int64_t{1} << 28;

int64_t Bytes(const Batch& batch) {
  int64_t bytes = 0;
  for (const Tensor& input : batch.inputs) {
    bytes += static_cast<int64_t>(input.TotalBytes());
  }
  return bytes;
}

template <typename Map>
std::vector<std::string> SortedKeys(const Map& map) {
  std::vector<std::string> keys;
  for (const auto& [key, unused] : map) keys.emplace_back(key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

absl::Status InputError(const std::string& path, const std::string& input,
                        std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": nothing can be made up for the input \"", input,
                   "\": ", what, "; give records by --dataset"));
}

template <typename T, typename Draw>
Tensor FilledWith(const TensorShape& shape, const Draw& draw) {
  Tensor tensor(tensorflow::DataTypeToEnum<T>::value, shape);
  auto flat = tensor.flat<T>();
  for (int64_t i = 0; i < flat.size(); ++i) flat(i) = static_cast<T>(draw());
  return tensor;
}

// Returns a tensor of random values, or of ones. Returns nothing for an
// unsupported type.
std::optional<Tensor> FilledTensor(DataType type, const TensorShape& shape,
                                   int64_t ids, bool ones) {
  std::mt19937_64 random;
  const auto number = [&] {
    // A double holds 53 bits.
    return ones ? 1.0
                : 2 * (static_cast<double>(random() >> 11) / (1LL << 53)) - 1;
  };
  const auto id = [&] { return ones ? 1 : random() % ids; };
  switch (type) {
    case tensorflow::DT_FLOAT:
      return FilledWith<float>(shape, number);
    case tensorflow::DT_DOUBLE:
      return FilledWith<double>(shape, number);
    case tensorflow::DT_HALF:
      return FilledWith<Eigen::half>(shape, number);
    case tensorflow::DT_BFLOAT16:
      return FilledWith<tensorflow::bfloat16>(shape, number);
    case tensorflow::DT_INT32:
      return FilledWith<int32_t>(shape, id);
    case tensorflow::DT_INT64:
      return FilledWith<int64_t>(shape, id);
    case tensorflow::DT_BOOL:
      return FilledWith<bool>(shape, [&] { return ones || random() % 2 == 1; });
    default:
      return std::nullopt;
  }
}

std::string FillText(DataType type, int64_t ids, bool ones) {
  if (ones) return "all 1";
  if (type == tensorflow::DT_BOOL) return "random";
  return tensorflow::DataTypeIsInteger(type)
             ? absl::StrCat("random whole numbers from 0 to ", ids - 1)
             : "random numbers from -1 to 1";
}

absl::StatusOr<TensorShape> SyntheticShape(const TensorInfo& info,
                                           const std::string& path,
                                           const std::string& input,
                                           int64_t length, int64_t batch_size) {
  if (info.tensor_shape().unknown_rank() ||
      info.tensor_shape().dim_size() == 0) {
    return InputError(path, input,
                      info.tensor_shape().unknown_rank()
                          ? "the signature gives it no shape"
                          : "it is a scalar, without a dimension for records");
  }
  TensorShape shape;
  int64_t elements = 1;
  for (int i = 0; i < info.tensor_shape().dim_size(); ++i) {
    int64_t size = info.tensor_shape().dim(i).size();
    if (i == 0 && size >= 0 && size != batch_size) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": the input \"", input, "\" takes batches of ", size,
          " (its shape is ", TensorShape::DebugString(info.tensor_shape()),
          "), not of ", batch_size, ": set --batch_size=", size));
    }
    if (size < 0) size = i == 0 ? batch_size : length;
    if (size > 0 && elements > kMostElements / size) {
      return InputError(path, input, "it would be too big");
    }
    elements *= size;
    shape.AddDim(size);
  }
  return shape;
}

absl::StatusOr<std::string> ChooseOutput(const SignatureDef& signature,
                                         const std::string& path,
                                         const std::string& wanted) {
  if (!wanted.empty()) return wanted;
  const auto& outputs = signature.outputs();
  if (outputs.size() == 1) return std::string(outputs.begin()->first);
  if (outputs.contains(kLogits)) return std::string(kLogits);
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": its signature has ",
      outputs.empty() ? "no output"
                      : absl::StrCat("the outputs ",
                                     absl::StrJoin(SortedKeys(outputs), ", ")),
      ": name the one to compute by --output"));
}

// Returns how many scores the output has at each position of each text, which
// is the size of the vocabulary, or 0 if the signature does not say.
int64_t VocabularySize(const SignatureDef& signature,
                       const std::string& output) {
  const auto found = signature.outputs().find(output);
  if (found == signature.outputs().end()) return 0;
  const auto& shape = found->second.tensor_shape();
  return shape.dim_size() == 3 ? std::max<int64_t>(0, shape.dim(2).size()) : 0;
}

bool IsMask(const std::string& input) { return absl::EndsWith(input, "mask"); }

// Returns the input that takes texts as numbers.
absl::StatusOr<std::string> TokenInput(const SignatureDef& signature,
                                       const std::string& path) {
  std::vector<std::string> whole;
  for (const std::string& input : SortedKeys(signature.inputs())) {
    const DataType type = signature.inputs().at(input).dtype();
    const bool is_whole =
        type == tensorflow::DT_INT32 || type == tensorflow::DT_INT64;
    if (!is_whole || IsMask(input)) continue;
    if (input == kTokens) return input;
    whole.push_back(input);
  }
  if (whole.size() == 1) return whole.front();
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": of its inputs ",
      absl::StrJoin(SortedKeys(signature.inputs()), ", "), " none is called ",
      kTokens,
      " and none is the only one of whole numbers, to feed the tokens to; give "
      "records by --dataset"));
}

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

struct TokenArray {
  // The number of texts in the file.
  int64_t rows = 0;
  // The first texts, as DT_INT64 with the shape [texts, length].
  Tensor ids;
};

// Reads the first `rows` texts, or all if there are fewer. Fails, naming the
// file, if it is not a token array or has no texts.
absl::StatusOr<TokenArray> ReadTokenArray(const std::string& path,
                                          int64_t rows) {
  REQUANT_ASSIGN_OR_RETURN(const NpyHeader header, ReadTokenHeader(path));
  DatasetSpec spec;
  (*spec.mutable_numpy()->mutable_arrays())[kTokens] = path;
  InputSpec& input = *spec.add_input();
  input.add_feature(kTokens);
  input.set_placeholder(kTokens);
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

// Returns `ids` as `type`. Fails for an id that is negative or, unless
// `vocabulary` is 0, not below it.
absl::StatusOr<Tensor> FittingTokens(const Tensor& ids, DataType type,
                                     int64_t vocabulary,
                                     const std::string& file) {
  const auto from = ids.flat<int64_t>();
  Tensor tensor(type, ids.shape());
  for (int64_t i = 0; i < from.size(); ++i) {
    const int64_t limit = vocabulary > 0                 ? vocabulary
                          : type == tensorflow::DT_INT32 ? int64_t{1} << 31
                                                         : INT64_MAX;
    if (from(i) < 0 || from(i) >= limit) {
      return absl::InvalidArgumentError(absl::StrCat(
          file, " has ", from(i), " in row ", i / ids.dim_size(1),
          ", and the model takes whole numbers from 0 to ", limit - 1,
          "; name another file by --tokens, or take this one away"));
    }
    if (type == tensorflow::DT_INT32) {
      tensor.flat<int32_t>()(i) = static_cast<int32_t>(from(i));
    } else {
      tensor.flat<int64_t>()(i) = from(i);
    }
  }
  return tensor;
}

// Adds an input of the batch's size, and its note.
absl::Status AddMadeUpInput(const TensorInfo& info, const std::string& path,
                            const std::string& input, int64_t ids,
                            SyntheticBatch* made) {
  REQUANT_ASSIGN_OR_RETURN(
      const TensorShape shape,
      SyntheticShape(info, path, input, made->length, made->batch.size));
  const bool ones = IsMask(input);
  std::optional<Tensor> tensor = FilledTensor(info.dtype(), shape, ids, ones);
  if (!tensor.has_value()) {
    return InputError(path, input,
                      absl::StrCat("it is of type ",
                                   tensorflow::DataTypeString(info.dtype())));
  }
  made->batch.inputs.push_back(*std::move(tensor));
  made->notes.push_back(absl::StrCat(
      input, ": ", tensorflow::DataTypeString(info.dtype()), " ",
      shape.DebugString(), ", ", FillText(info.dtype(), ids, ones)));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Batch>> PreloadBatches(const DatasetSpec& dataset,
                                                  const std::string& name,
                                                  BatchOptions options,
                                                  int64_t max_batches,
                                                  int64_t max_bytes) {
  if (dataset.has_in_graph()) {
    return absl::InvalidArgumentError(absl::StrCat(
        name,
        ": its records are read by the graph itself (in_graph) and "
        "cannot be preloaded; requant evaluate times such a "
        "graph"));
  }
  REQUANT_ASSIGN_OR_RETURN(const std::unique_ptr<BatchSource> source,
                           OpenBatchSource(dataset, options));
  std::vector<Batch> batches;
  int64_t bytes = 0;
  while (static_cast<int64_t>(batches.size()) < max_batches &&
         (batches.empty() || bytes < max_bytes)) {
    Batch batch;
    REQUANT_ASSIGN_OR_RETURN(const bool more, source->Next(&batch));
    if (!more) break;
    if (batch.size < options.batch_size && !batches.empty()) break;
    bytes += Bytes(batch);
    batches.push_back(std::move(batch));
  }
  if (batches.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has no records to run"));
  }
  return batches;
}

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
  std::sort(names.begin(), names.end());
  // The array that is named after the input comes first.
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) {
                          return name == absl::StrCat(kTokens, ".npy");
                        });
  for (const std::string& name : names) {
    const std::string file = absl::StrCat(path, "/", name);
    if (ReadTokenHeader(file).ok()) return file;
  }
  return "";
}

absl::StatusOr<SyntheticBatch> MakeSyntheticBatch(
    const SignatureDef& signature, const std::string& path,
    const SyntheticInputs& synthetic, int64_t batch_size) {
  SyntheticBatch made;
  REQUANT_ASSIGN_OR_RETURN(const std::string output,
                           ChooseOutput(signature, path, synthetic.output()));
  made.dataset.mutable_prediction()->set_tensor(output);
  const int64_t vocabulary = VocabularySize(signature, output);
  const absl::StatusOr<std::string> token_input = TokenInput(signature, path);
  // Other integers, such as positions, have a table of their own.
  const auto ids_of = [&](const std::string& input) {
    if (synthetic.ids() > 0) return int64_t{synthetic.ids()};
    return vocabulary > 0 && token_input.ok() && input == *token_input
               ? vocabulary
               : kIdsOfUnknownVocabulary;
  };
  made.ids = ids_of(token_input.ok() ? *token_input : "");
  made.length = synthetic.length();
  TokenArray tokens;
  if (!synthetic.tokens().empty()) {
    REQUANT_RETURN_IF_ERROR(token_input.status());
    REQUANT_ASSIGN_OR_RETURN(tokens,
                             ReadTokenArray(synthetic.tokens(), batch_size));
    batch_size = tokens.ids.dim_size(0);
    made.length = tokens.ids.dim_size(1);
  }
  made.batch.size = batch_size;
  // Protobuf maps are unordered.
  const std::map<std::string, TensorInfo> inputs(signature.inputs().begin(),
                                                 signature.inputs().end());
  if (inputs.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": its signature has no inputs to feed"));
  }
  for (const auto& [input, info] : inputs) {
    InputSpec& fed = *made.dataset.add_input();
    fed.add_feature(input);
    fed.set_placeholder(input);
    fed.set_dtype(tensorflow::DataTypeString(info.dtype()));
    if (synthetic.tokens().empty() || input != *token_input) {
      REQUANT_RETURN_IF_ERROR(
          AddMadeUpInput(info, path, input, ids_of(input), &made));
      continue;
    }
    REQUANT_ASSIGN_OR_RETURN(Tensor tensor,
                             FittingTokens(tokens.ids, info.dtype(), vocabulary,
                                           synthetic.tokens()));
    made.token_note =
        absl::StrCat(input, ": ", tensorflow::DataTypeString(info.dtype()), " ",
                     tensor.shape().DebugString(), ", the first of ",
                     tokens.rows, " rows of ", synthetic.tokens());
    made.batch.inputs.push_back(std::move(tensor));
  }
  return made;
}

}  // namespace requant
