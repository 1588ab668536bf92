#ifndef REQUANT_RUNTIME_CALIBRATION_CONVERT_H_
#define REQUANT_RUNTIME_CALIBRATION_CONVERT_H_

// A SavedModel's graph and functions transformed, and all written back as a
// SavedModel.

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/saved_model/saved_model_writer.h"
#include "transforms/pipeline.h"
#include "transforms/pipeline_parser.h"
#include "transforms/registry.h"

namespace requant {

struct ConvertOptions {
  // The SavedModel directory itself as the source.
  SavedModelWriterOptions files;
  // Which of its graphs; empty: as ReadSavedModel chooses.
  std::set<std::string> tags;
  // Must be there, unless empty.
  std::string signature;
  // None: the model is written back as it is.
  std::vector<TransformCall> calls;
  // Is called, if set, when the model has been read and the target may be
  // written: the place for long work that the transforms need.
  std::function<absl::Status()> before_transforms;
  // Where the graph is written as it was and as it is now; "": nowhere.
  std::string extracted_graph;
  std::string converted_graph;
  // How the transforms run. Inputs and outputs are those that the model's parts
  // name.
  PipelineOptions pipeline;
  // Needed when there are calls.
  const TransformRegistry* registry = nullptr;
};

// A graph with the bodies of its functions.
struct ModelSize {
  int64_t nodes = 0;
  int64_t functions = 0;
  int64_t bytes = 0;
};

struct ConvertedModel {
  // Whether the graph differs from what it was.
  bool changed = false;
  ModelSize before;
  ModelSize after;
  PlacedVariables variables;
  std::vector<std::string> notes;
};

// Converts the model. After an error the target is as it was before and no
// graph is written, unless writing the graphs failed: they are written last,
// and the message then says that the target is there.
absl::StatusOr<ConvertedModel> Convert(const ConvertOptions& options);

}  // namespace requant

#endif  // REQUANT_RUNTIME_CALIBRATION_CONVERT_H_
