#ifndef REQUANT_SHELL_PREPARE_MODEL_H_
#define REQUANT_SHELL_PREPARE_MODEL_H_

#include <string>

#include "absl/status/statusor.h"

namespace requant {

// What the published prepare_model.py leaves behind, without fetching it: the
// SavedModel in FOLDER/saved_model/1, where FOLDER is "./gpt-j-6B" in the
// document. A SavedModel that is FOLDER itself, as the document's next lines
// leave it, is moved there, so that these lines can be pasted again. Returns
// what to tell. The error says which files are missing, where they belong and
// how to get them; `tiny_model` is the tiny GPT-J that Requant carries, or "".
absl::StatusOr<std::string> PrepareModel(const std::string& folder,
                                         const std::string& tiny_model);

}  // namespace requant

#endif  // REQUANT_SHELL_PREPARE_MODEL_H_
