#ifndef REQUANT_GRAPH_SAVED_MODEL_SAVED_MODEL_WRITER_H_
#define REQUANT_GRAPH_SAVED_MODEL_SAVED_MODEL_WRITER_H_

// A SavedModel written anew from another one, of which all files but the graph
// stay as they are. Variables are never read.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files/staged_folder.h"

namespace requant {

// How the files of variables come to the new model. Other files, which people
// edit in place, are never linked.
enum class VariablePlacement {
  // Shared until written to, where the file system can do that (kCopy's way of
  // first choice, too); else linked; else copied.
  kAuto,
  // Hard-linked, or the model is not written.
  kLink,
  // Files of their own.
  kCopy,
};

// Parses the value of a flag: "auto", "link" or "copy".
absl::StatusOr<VariablePlacement> ParseVariablePlacement(
    const std::string& text);

// Refuses a file that is, or is in, the target: that is put in its place as a
// whole.
absl::Status CheckOutside(const std::string& file, const std::string& target);

struct SavedModelWriterOptions {
  // A SavedModel directory, and where the new one is to be.
  std::string source;
  std::string target;
  // Replace a SavedModel that is there, unless there are things in its folder
  // that neither a SavedModel nor the source has.
  bool overwrite = false;
  VariablePlacement variables = VariablePlacement::kAuto;
};

// What became of the files of the variables.
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
  // Commit there is only a temporary folder beside it (StagedFolder).
  static absl::StatusOr<std::unique_ptr<SavedModelWriter>> Open(
      const SavedModelWriterOptions& options);

  // Writes all files. With `content` the file `name` ("saved_model.pb") gets
  // that content and the model's fingerprint is computed anew. The disk must
  // have space for all that is copied.
  absl::Status Fill(const std::string& name,
                    const std::optional<std::string>& content);

  // Puts the model in its place.
  absl::Status Commit();

  const PlacedVariables& variables() const { return placed_; }
  // Returns what the user should know of.
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
