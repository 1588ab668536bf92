#ifndef REQUANT_GRAPH_SAVED_MODEL_SAVED_MODEL_WRITER_H_
#define REQUANT_GRAPH_SAVED_MODEL_SAVED_MODEL_WRITER_H_

// Writes a copy of a SavedModel in which only the graph changes. Variables are
// never read.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files/staged_folder.h"

namespace requant {

// How the files of variables get into the new model. Other files, which people
// edit in place, are never linked.
enum class VariablePlacement {
  // Shares blocks until written, if the file system supports that (which kCopy
  // also tries first); else links; else copies.
  kAuto,
  // Makes hard links or fails.
  kLink,
  // Makes independent files.
  kCopy,
};

// Parses the value of a flag: "auto", "link" or "copy".
absl::StatusOr<VariablePlacement> ParseVariablePlacement(
    const std::string& text);

// Fails if a SavedModel must not be written to `target`: it is, is in, or has
// in it the model that is read, `source`, or with `overwrite` it has files that
// neither a SavedModel nor the source has. (StagedFolder refuses anything that
// is there otherwise.)
absl::Status CheckSavedModelTarget(const std::string& source,
                                   const std::string& target, bool overwrite);

// Refuses a file that is, or is in, the target, which is replaced as a whole.
absl::Status CheckOutside(const std::string& file, const std::string& target);

// Writes the fingerprint of the SavedModel in `folder`, whose main file has
// `content`. TensorFlow does not check a fingerprint, but shows it to programs
// that track models. Its uuid is random, but ours follows from the content, so
// that equal models give equal files. Returns InvalidArgument if TensorFlow
// cannot compute it.
absl::Status WriteFingerprint(const std::string& folder,
                              const std::string& content);

struct SavedModelWriterOptions {
  // The SavedModel directory to read, and the one to write.
  std::string source;
  std::string target;
  // Whether to replace an existing SavedModel, unless its folder has files that
  // neither a SavedModel nor the source has.
  bool overwrite = false;
  VariablePlacement variables = VariablePlacement::kAuto;
};

// What happened to the files of the variables.
struct PlacedVariables {
  int64_t files = 0;
  int64_t bytes = 0;
  int cloned = 0;
  int linked = 0;
  int copied = 0;
};

class SavedModelWriter {
 public:
  // Checks that the target may be written and is apart from the source. Until
  // Commit there is only a temporary folder next to it (StagedFolder).
  static absl::StatusOr<std::unique_ptr<SavedModelWriter>> Open(
      const SavedModelWriterOptions& options);

  // Writes all files. With `content` the file `name` ("saved_model.pb") gets
  // that content, and the model's fingerprint is recomputed. The disk must have
  // space for all copies.
  absl::Status Fill(const std::string& name,
                    const std::optional<std::string>& content);

  // Moves the model into place.
  absl::Status Commit();

  const PlacedVariables& variables() const { return placed_; }
  // Returns notes for the user.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  SavedModelWriter(const SavedModelWriterOptions& options,
                   std::unique_ptr<StagedFolder> folder);

  absl::Status PlaceVariables(const std::vector<std::string>& files,
                              std::vector<std::string>* rest);
  absl::Status CopyRest(const std::vector<std::string>& files,
                        int64_t more_bytes);
  absl::Status RenewFingerprint(const std::string& name,
                                const std::string& content);
  std::string From(const std::string& file) const;
  std::string To(const std::string& file) const;

  const SavedModelWriterOptions options_;
  const std::unique_ptr<StagedFolder> folder_;
  PlacedVariables placed_;
  std::vector<std::string> notes_;
};

}  // namespace requant

#endif  // REQUANT_GRAPH_SAVED_MODEL_SAVED_MODEL_WRITER_H_
