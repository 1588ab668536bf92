#include "runtime/servable/warm_up.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "graph/graph_io.h"
#include "runtime/servable/prediction_log.pb.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/lib/io/record_reader.h"
#include "tensorflow/core/lib/io/record_writer.h"
#include "tensorflow/core/platform/env.h"

namespace requant {
namespace {

using tensorflow::Tensor;
using TensorBytes = google::protobuf::Map<std::string, std::string>;

constexpr char kFolder[] = "/assets.extra";
constexpr char kFile[] = "/assets.extra/tf_serving_warmup_requests";

void PutTensors(const std::map<std::string, Tensor>& tensors,
                TensorBytes* bytes) {
  for (const auto& [key, tensor] : tensors) {
    tensorflow::TensorProto proto;
    tensor.AsProtoTensorContent(&proto);
    (*bytes)[key] = DeterministicBytes(proto);
  }
}

absl::StatusOr<std::map<std::string, Tensor>> TakeTensors(
    const TensorBytes& bytes, const std::string& path) {
  std::map<std::string, Tensor> tensors;
  for (const auto& [key, content] : bytes) {
    tensorflow::TensorProto proto;
    if (!proto.ParseFromString(content) || !tensors[key].FromProto(proto)) {
      return absl::DataLossError(
          absl::StrCat(path, " is damaged: its \"", key, "\" is no tensor"));
    }
  }
  return tensors;
}

absl::StatusOr<WarmUpRequest> ParseRequest(const std::string& content,
                                           const std::string& path) {
  PredictionLog log;
  if (!log.ParseFromString(content) || !log.has_predict_log()) {
    return absl::DataLossError(
        absl::StrCat(path, " has a record that is no request to predict"));
  }
  const PredictRequest& request = log.predict_log().request();
  WarmUpRequest result;
  result.model = request.model_spec().name();
  result.signature = request.model_spec().signature_name();
  REQUANT_ASSIGN_OR_RETURN(result.inputs, TakeTensors(request.inputs(), path));
  REQUANT_ASSIGN_OR_RETURN(
      result.outputs,
      TakeTensors(log.predict_log().response().outputs(), path));
  return result;
}

}  // namespace

absl::StatusOr<WarmUpRequest> RecordRequest(Model* model,
                                            const std::string& signature,
                                            const DatasetSpec& dataset,
                                            const Batch& batch) {
  WarmUpRequest request;
  request.signature = signature;
  REQUANT_ASSIGN_OR_RETURN(const std::vector<std::string> inputs,
                           model->ConnectInputs(dataset));
  for (const auto& [key, info] : model->signature().inputs()) {
    const auto fed = std::find(inputs.begin(), inputs.end(), info.name());
    if (fed != inputs.end()) {
      request.inputs[key] = batch.inputs[fed - inputs.begin()];
    }
    for (const auto& [tensor, value] : model->constants()) {
      if (tensor == info.name()) request.inputs[key] = value;
    }
    if (request.inputs.count(key) == 0) {
      return absl::NotFoundError(
          absl::StrCat("the records have nothing for the input \"", key, "\""));
    }
  }
  std::vector<std::string> keys, outputs;
  for (const auto& [key, info] : model->signature().outputs()) {
    // Requests have dense tensors only.
    if (info.encoding_case() != tensorflow::TensorInfo::kName) continue;
    keys.push_back(key);
    outputs.push_back(info.name());
  }
  REQUANT_ASSIGN_OR_RETURN(const auto function,
                           ModelFunction::Make(model, inputs, outputs));
  std::vector<Tensor> values;
  REQUANT_RETURN_IF_ERROR(RunError(function->Run(batch.inputs, &values),
                                   model->path(), RecordsText(batch)));
  for (size_t i = 0; i < keys.size(); ++i) request.outputs[keys[i]] = values[i];
  return request;
}

absl::Status WriteWarmUp(const std::string& folder,
                         const std::vector<WarmUpRequest>& requests) {
  if (mkdir((folder + kFolder).c_str(), 0777) != 0 && errno != EEXIST) {
    return absl::ErrnoToStatus(errno,
                               absl::StrCat("cannot write ", folder, kFolder));
  }
  const std::string path = folder + kFile;
  // A copy of the original's may be read-only.
  unlink(path.c_str());
  std::unique_ptr<tensorflow::WritableFile> file;
  REQUANT_RETURN_IF_ERROR(
      tensorflow::Env::Default()->NewWritableFile(path, &file));
  tensorflow::io::RecordWriter writer(file.get());
  for (const WarmUpRequest& request : requests) {
    PredictionLog log;
    PredictRequest* asked = log.mutable_predict_log()->mutable_request();
    asked->mutable_model_spec()->set_name(request.model);
    asked->mutable_model_spec()->set_signature_name(request.signature);
    PutTensors(request.inputs, asked->mutable_inputs());
    PredictResponse* answer = log.mutable_predict_log()->mutable_response();
    *answer->mutable_model_spec() = asked->model_spec();
    PutTensors(request.outputs, answer->mutable_outputs());
    REQUANT_RETURN_IF_ERROR(writer.WriteRecord(DeterministicBytes(log)));
  }
  REQUANT_RETURN_IF_ERROR(writer.Close());
  REQUANT_RETURN_IF_ERROR(file->Close());
  return SyncPath(path);
}

absl::StatusOr<std::vector<WarmUpRequest>> ReadWarmUp(
    const std::string& folder) {
  const std::string path = folder + kFile;
  std::vector<WarmUpRequest> requests;
  std::unique_ptr<tensorflow::RandomAccessFile> file;
  const absl::Status opened =
      tensorflow::Env::Default()->NewRandomAccessFile(path, &file);
  if (absl::IsNotFound(opened)) return requests;
  REQUANT_RETURN_IF_ERROR(opened);
  tensorflow::io::SequentialRecordReader reader(file.get());
  while (true) {
    tensorflow::tstring record;
    const absl::Status read = reader.ReadRecord(&record);
    if (absl::IsOutOfRange(read)) return requests;
    if (!read.ok()) {
      return absl::DataLossError(
          absl::StrCat(path, " is damaged: ", read.message()));
    }
    REQUANT_ASSIGN_OR_RETURN(WarmUpRequest request, ParseRequest(record, path));
    requests.push_back(std::move(request));
  }
}

}  // namespace requant
