#include "graph/testing/saved_models.h"

#include <filesystem>

#include "graph/constant_store.h"
#include "graph/freeze/freeze.h"
#include "graph/graph_io.h"
#include "graph/saved_model/saved_model_file.h"

namespace requant {

Tensor RandomInput(const tensorflow::TensorInfo& info,
                   std::mt19937* generator) {
  constexpr int kBatch = 6;
  tensorflow::TensorShape shape;
  for (const auto& dim : info.tensor_shape().dim()) {
    shape.AddDim(dim.size() < 0 ? kBatch : dim.size());
  }
  Tensor tensor(info.dtype(), shape);
  const std::vector<std::string> words = {"red", "green", "blue", "pink", ""};
  for (int64_t i = 0; i < tensor.NumElements(); ++i) {
    const int number = (*generator)() % 5;
    if (info.dtype() == tensorflow::DT_FLOAT) {
      tensor.flat<float>()(i) =
          std::uniform_real_distribution<float>(-2, 2)(*generator);
    } else if (info.dtype() == tensorflow::DT_INT32) {
      tensor.flat<int32_t>()(i) = number;
    } else if (info.dtype() == tensorflow::DT_INT64) {
      tensor.flat<int64_t>()(i) = number;
    } else {
      tensor.flat<tensorflow::tstring>()(i) = words[number];
    }
  }
  return tensor;
}

void ExpectSameTensors(const Tensor& expected, const Tensor& actual) {
  constexpr double kTolerance = 1e-6;
  ASSERT_EQ(expected.dtype(), actual.dtype());
  ASSERT_EQ(expected.shape().DebugString(), actual.shape().DebugString());
  if (expected.dtype() == tensorflow::DT_FLOAT) {
    EXPECT_THAT(
        ValuesOf(actual),
        testing::Pointwise(testing::FloatNear(kTolerance), ValuesOf(expected)));
  } else {
    EXPECT_EQ(expected.SummarizeValue(expected.NumElements()),
              actual.SummarizeValue(expected.NumElements()));
  }
}

absl::StatusOr<ExportedModel> FreezeAndExport(const std::string& model,
                                              int64_t most_graph_bytes,
                                              const std::string& folder) {
  FreezeOptions freezing;
  freezing.files.saved_model = model;
  freezing.all_signatures = true;
  auto frozen = Freeze(freezing);
  if (!frozen.ok()) return frozen.status();
  ExportOptions options;
  options.source = model;
  const auto meta = ReadSavedModel(model);
  if (!meta.ok()) return meta.status();
  for (const std::string& key : SignatureNames(*meta)) {
    options.signatures[key] = meta->signature_def().at(key);
  }
  options.vocabularies = frozen->vocabularies;
  options.most_graph_bytes = most_graph_bytes;
  options.least_variable_bytes = 80;
  // Freezing stores weights, and this what was a constant before.
  StoreConstants(&frozen->graph);
  std::filesystem::create_directories(folder);
  return ExportSavedModel(options, std::move(frozen->graph), folder);
}

}  // namespace requant
