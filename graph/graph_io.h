#ifndef REQUANT_GRAPH_GRAPH_IO_H_
#define REQUANT_GRAPH_GRAPH_IO_H_

// Reads and writes graphs: binary and text GraphDefs (distinguished by their
// content), MetaGraphDefs and SavedModel directories.

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"

namespace requant {

enum class GraphFormat { kBinary, kText };

// Protobuf's limit: a larger graph can be neither written nor read.
inline constexpr int64_t kMaxGraphBytes = (int64_t{1} << 31) - 1;

// Reads a GraphDef from a binary or text GraphDef file, a MetaGraphDef file
// (either may be gzipped), or a SavedModel directory (or its saved_model.pb).
// `tags` chooses among a SavedModel's graphs; see ReadSavedModel. For any other
// file the error names the path and, in text, the line.
absl::StatusOr<tensorflow::GraphDef> ReadGraph(
    const std::string& path, const std::set<std::string>& tags = {});

// Fails, saying what to do, if the path's ending is that of a model that is not
// TensorFlow's: .keras, .h5, .onnx or .tflite.
absl::Status CheckModelFormat(const std::string& path);

// Returns whether `path` is a directory with saved_model.pb or .pbtxt.
bool IsSavedModelDirectory(const std::string& path);

// Returns the SavedModel directory that `path` refers to: a directory itself,
// or that of a saved_model.pb or saved_model.pbtxt; "" for any other file.
std::string SavedModelDirectory(const std::string& path);

// Reads the MetaGraphDef with exactly `tags`, or without tags the only one, or
// the one tagged "serve". If there is none, the error lists what there is.
absl::StatusOr<tensorflow::MetaGraphDef> ReadSavedModel(
    const std::string& directory, const std::set<std::string>& tags = {});

// The content of a SavedModel directory's main file.
struct SavedModelContent {
  // The path of saved_model.pb, or else of saved_model.pbtxt.
  std::string path;
  std::string bytes;
  bool is_text = false;
  tensorflow::SavedModel model;
  // The index of the graph that ReadSavedModel returns.
  int chosen = 0;
};
absl::StatusOr<SavedModelContent> ReadSavedModelContent(
    const std::string& directory, const std::set<std::string>& tags = {});

// Returns whether the content of a file is a text message.
bool LooksLikeText(std::string_view content);

// Writes atomically; the same graph always gives the same bytes.
absl::Status WriteGraph(const tensorflow::GraphDef& graph,
                        const std::string& path, GraphFormat format);

// Returns the same bytes for equal messages, whatever their maps' order.
std::string DeterministicBytes(const google::protobuf::Message& message);
bool SameMessage(const google::protobuf::Message& a,
                 const google::protobuf::Message& b);

// Returns the bytes that WriteGraph(..., kBinary) writes.
absl::StatusOr<std::string> SerializeGraph(const tensorflow::GraphDef& graph);

}  // namespace requant

#endif  // REQUANT_GRAPH_GRAPH_IO_H_
