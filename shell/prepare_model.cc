#include "shell/prepare_model.h"

#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/saved_model/saved_model_file.h"
#include "graph/saved_model/saved_model_folder.h"

namespace requant {
namespace {

namespace fs = std::filesystem;

absl::Status MissingError(const std::string& folder, const std::string& place,
                          const std::string& tiny_model) {
  std::string text = absl::StrCat(
      "there is no model in ", folder,
      ", and this script does not fetch GPT-J (24 GB): bring these files\n  ",
      place, "/saved_model.pb\n  ", place, "/variables/variables.index\n  ",
      place,
      "/variables/variables.data-00000-of-00001 (and its other parts, if it "
      "has any)\nThese lines make them where transformers, PyTorch and "
      "TensorFlow are installed:\n"
      "  from transformers import TFGPTJForCausalLM\n"
      "  model = TFGPTJForCausalLM.from_pretrained('EleutherAI/gpt-j-6B', "
      "from_pt=True)\n"
      "  model.save_pretrained('",
      folder, "', saved_model=True)");
  if (!tiny_model.empty()) {
    absl::StrAppend(&text,
                    "\nTo try the document with a tiny GPT-J:\n"
                    "  mkdir -p ",
                    folder, "/saved_model && cp -r ", tiny_model, " ", place);
  }
  return absl::NotFoundError(text);
}

// Renames a folder, and makes those that its new name is in.
absl::Status Move(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::create_directories(fs::path(to).parent_path(), error);
  if (!error) fs::rename(from, to, error);
  if (!error) return absl::OkStatus();
  return absl::ErrnoToStatus(error.value(),
                             absl::StrCat("cannot move ", from, " to ", to));
}

}  // namespace

absl::StatusOr<std::string> PrepareModel(const std::string& folder,
                                         const std::string& tiny_model) {
  const std::string place = absl::StrCat(folder, "/saved_model/1");
  const std::string aside = absl::StrCat(folder, ".requant-move");
  auto found = FindSavedModel(folder);
  if (absl::IsNotFound(found.status()) && fs::exists(aside)) {
    // A run before this one was killed as it moved the model.
    REQUANT_RETURN_IF_ERROR(Move(aside, place));
    found = place;
  }
  if (absl::IsNotFound(found.status())) {
    return MissingError(folder, place, tiny_model);
  }
  REQUANT_RETURN_IF_ERROR(found.status());
  REQUANT_ASSIGN_OR_RETURN(const SavedModelFile file,
                           SavedModelFile::Read(*found));
  REQUANT_RETURN_IF_ERROR(CheckVariables(*found, file.meta().graph_def()));
  if (*found != folder) {
    return absl::StrCat("the model is there: ", *found);
  }
  REQUANT_RETURN_IF_ERROR(Move(folder, aside));
  REQUANT_RETURN_IF_ERROR(Move(aside, place));
  return absl::StrCat("the model was there: moved ", folder, " to ", place,
                      ", where the document's next lines take it from");
}

}  // namespace requant
