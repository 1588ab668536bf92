#ifndef REQUANT_RUNTIME_SERVABLE_MAKE_SERVABLE_H_
#define REQUANT_RUNTIME_SERVABLE_MAKE_SERVABLE_H_

// Takes a SavedModel through all steps to an eight-bit SavedModel.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/quantization/quantize.h"
#include "runtime/servable/servable.h"
#include "runtime/servable/write_servable.h"
#include "runtime/session/job.pb.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace requant {

struct ServableJob {
  // The SavedModel, the tags of its graph, and the signature that the records
  // are for; see ChooseSignature.
  std::string saved_model;
  std::set<std::string> tags;
  std::string signature;
  // The dataset, how many records at most are calibrated on, and the like.
  CalibrateJob settings;
  // Records for further signatures.
  std::map<std::string, DatasetSpec> others;
  // The declaration's name, for messages.
  std::string dataset;
  // The graph's outputs are added.
  QuantizeParameters parameters;
  // The version of TensorFlow, such as "2.15", that is to run the model; "" is
  // this one.
  std::string tensorflow;
  // A folder for the SavedModel, or a graph's file, whose name ends in .pb or
  // .pbtxt.
  std::string target;
  // Whether a SavedModel that is there is replaced.
  bool overwrite = false;
};

struct MadeServable {
  std::unique_ptr<FrozenModel> model;
  // Has the SavedModel, to be committed; null for a graph's file, whose content
  // is `graph`, which is empty otherwise.
  std::unique_ptr<ServableWriter> writer;
  tensorflow::GraphDef graph;
  // Lines for users on what was done and found.
  std::string text;
  // The same as a JSON object: for programs.
  std::string json;

  // Commits the SavedModel, or writes the graph's file `target`.
  absl::Status Write(const std::string& target) const;
};

// Returns about how many bytes of memory MakeServable needs for the SavedModel,
// with or without moments of layers' inputs; 0 if there is no such SavedModel.
int64_t NeededMemory(const std::string& saved_model, bool keeps_moments);

// If no layer is worth quantizing, the float model is written, and the text
// says so.
absl::StatusOr<MadeServable> MakeServable(const ServableJob& job);

}  // namespace requant

#endif  // REQUANT_RUNTIME_SERVABLE_MAKE_SERVABLE_H_
