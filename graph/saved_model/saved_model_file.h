#ifndef REQUANT_GRAPH_SAVED_MODEL_SAVED_MODEL_FILE_H_
#define REQUANT_GRAPH_SAVED_MODEL_SAVED_MODEL_FILE_H_

// A saved_model.pb (or .pbtxt) whose graph is replaced and of which all else
// stays as it is, to the byte.

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace requant {

// A field of a serialized protocol buffer, which is taken apart and put
// together again without being parsed, so that what is not touched keeps its
// bytes.
struct MessageField {
  int number = 0;
  // The field with its tag.
  std::string_view bytes;
  // What a field of type message, string or bytes holds; "" for others.
  std::string_view payload;
};

// Splits a serialized message into its fields in their order, as parts of
// `message`. Returns false when it is none.
bool SplitFields(std::string_view message, std::vector<MessageField>* fields);

// Returns the payloads of all fields of that number one after another: the
// serialized submessage, of which a serializer may write parts.
std::string JoinedPayload(const std::vector<MessageField>& fields, int number);

// Appends a field of type message, string or bytes.
void AppendField(int number, std::string_view payload, std::string* message);

class SavedModelFile {
 public:
  // Reads the file of a SavedModel directory and chooses among its graphs as
  // ReadSavedModel does.
  static absl::StatusOr<SavedModelFile> Read(
      const std::string& directory, const std::set<std::string>& tags = {});

  // Returns "saved_model.pb" or "saved_model.pbtxt".
  const std::string& name() const { return name_; }

  // Returns the chosen MetaGraphDef, without its graph once that was taken.
  const tensorflow::MetaGraphDef& meta() const { return meta_; }

  // Hands the graph over.
  tensorflow::GraphDef TakeGraph();

  // Returns the graph in binary: the file's own bytes, if they are binary.
  const std::string& graph_bytes() const { return graph_bytes_; }

  // Returns the content of a file of this kind in which the chosen graph is
  // `graph`, serialized as `graph_bytes`. Ops that the graph has come to use
  // are added to the list of ops that the MetaGraph carries, for which
  // LoadTensorFlow() must have been called; other parts and other MetaGraphs
  // keep their bytes. Fails beyond 2 GB.
  absl::StatusOr<std::string> WithGraph(const tensorflow::GraphDef& graph,
                                        const std::string& graph_bytes) const;

 private:
  SavedModelFile() = default;

  std::string path_;
  std::string name_;
  bool is_text_ = false;
  // In binary, whatever the file is.
  std::string content_;
  // Which of the MetaGraphs in it.
  int chosen_ = 0;
  tensorflow::MetaGraphDef meta_;
  std::string graph_bytes_;
};

}  // namespace requant

#endif  // REQUANT_GRAPH_SAVED_MODEL_SAVED_MODEL_FILE_H_
