#ifndef REQUANT_RUNTIME_SERVABLE_WRITE_SERVABLE_H_
#define REQUANT_RUNTIME_SERVABLE_WRITE_SERVABLE_H_

// Writes a SavedModel and finds out what it lost.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files/staged_folder.h"
#include "base/message/message_json.h"
#include "graph/saved_model/saved_model_export.h"
#include "runtime/evaluation.pb.h"
#include "runtime/servable/servable.h"
#include "runtime/servable/warm_up.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace requant {

// What the user asked for, for messages and the model's own README.
struct ServableRequest {
  // Paths as they were given.
  std::string target;
  // Whether a SavedModel that is there is replaced.
  bool overwrite = false;
  std::string dataset;
  // The parameter "target" of quantize_static.
  std::string cpus;
};

// What became of one signature.
struct ServedSignature {
  SignatureRecords records;
  // Unset if no records were held back.
  std::optional<EvaluateResult> comparison;
};

// Returns the parameter "target" that a model was quantized with, or "" if it
// does not say so.
std::string TargetOf(const tensorflow::MetaGraphDef& meta);

class ServableWriter {
 public:
  // Checks that the target may be written: a new or empty folder, or a
  // SavedModel if asked for, apart from the model. The folder around it, such
  // as that of a model's versions, need not exist. Until Commit there is only a
  // temporary folder beside it.
  static absl::StatusOr<std::unique_ptr<ServableWriter>> Open(
      const FrozenModel& model, const ServableRequest& request);

  // Writes the model with `graph` in place of its own and with requests to warm
  // up with, and compares the two on the records that were held back.
  // Attributes of `graph` with default values must have been removed.
  absl::Status Write(tensorflow::GraphDef graph,
                     const std::vector<SignatureRecords>& records,
                     const CalibrateJob& settings);

  absl::Status Commit() { return folder_->Commit(); }

  // Returns lines for users on what was written and what was found.
  std::string Text() const;
  // Returns the same for programs: the members of a JSON object.
  JsonMembers Members() const;

 private:
  ServableWriter(const FrozenModel& model, const ServableRequest& request,
                 const std::string& path, std::unique_ptr<StagedFolder> folder)
      : model_(model),
        request_(request),
        folder_(std::move(folder)),
        path_(path) {}

  // Returns whether a signature, or one that is equal to it, had records.
  bool IsCalibrated(const std::string& key) const;
  // Returns lines on what was found for each signature.
  std::string FindingsText() const;
  // Returns the text of the file that explains the model to those who serve it.
  std::string ReadmeText() const;

  // Returns a request with a few of the records and the written model's answer.
  absl::StatusOr<WarmUpRequest> RequestFor(const SignatureRecords& records,
                                           const CalibrateJob& settings);
  absl::Status WriteAndCompare(tensorflow::GraphDef graph,
                               const std::vector<SignatureRecords>& records,
                               const CalibrateJob& settings);

  const FrozenModel& model_;
  const ServableRequest request_;
  // What is put in place: the model, or a new folder around it.
  const std::unique_ptr<StagedFolder> folder_;
  // The model in it.
  const std::string path_;
  // Whether no layer was quantized.
  bool is_float_ = false;
  ExportedModel exported_;
  // Sentences on what runs it.
  std::string requirements_;
  std::vector<ServedSignature> signatures_;
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_SERVABLE_WRITE_SERVABLE_H_
