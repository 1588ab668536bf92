// python: runs our programs for the scripts of the published documents, and
// passes any other to the real Python, if there is one.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/process/sibling_program.h"
#include "base/process/subprocess.h"
#include "base/program/flags.h"
#include "base/status_macros.h"
#include "base/terminal_guard.h"
#include "graph/saved_model/saved_model_file.h"
#include "shell/scripts.h"
#include "workflows/language/shipped_workflows.h"

namespace requant {
namespace {

namespace fs = std::filesystem;

constexpr char kProgram[] = "python";
constexpr char kPrepareModel[] = "prepare_model.py";
constexpr char kModelFolder[] = "./gpt-j-6B";

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

// Renames a folder, creating the parents of its new name.
absl::Status Move(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::create_directories(fs::path(to).parent_path(), error);
  if (!error) fs::rename(from, to, error);
  if (!error) return absl::OkStatus();
  return absl::ErrnoToStatus(error.value(),
                             absl::StrCat("cannot move ", from, " to ", to));
}

// Leaves what the published prepare_model.py does, without downloading it: the
// SavedModel in FOLDER/saved_model/1, where FOLDER is "./gpt-j-6B" in the
// document. If FOLDER itself is a SavedModel, as the document's next lines
// leave it, it is moved there, so that these lines can be pasted again. Returns
// what to print. The error says which files are missing, where they belong and
// how to get them; `tiny_model` is the tiny GPT-J that Requant carries, or "".
absl::StatusOr<std::string> PrepareModel(const std::string& folder,
                                         const std::string& tiny_model) {
  const std::string place = absl::StrCat(folder, "/saved_model/1");
  const std::string aside = absl::StrCat(folder, ".requant-move");
  auto found = FindSavedModel(folder);
  if (absl::IsNotFound(found.status()) && fs::exists(aside)) {
    // An earlier run was killed while it moved the model.
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

int RunPrepareModel(const ScriptCommand& command) {
  if (!command.arguments.empty()) {
    return ReportUsage(kPrepareModel, absl::StrCat("unexpected argument \"",
                                                   command.arguments[0], "\""));
  }
  const auto workflows = ShippedWorkflowsFolder();
  const auto said = PrepareModel(
      kModelFolder, workflows.ok()
                        ? absl::StrCat(*workflows, "/gptj_tiny/saved_model/1")
                        : "");
  // The error has several lines, which are meant to be copied.
  std::fprintf(
      said.ok() ? stdout : stderr, "%s: %s\n", kPrepareModel,
      said.ok() ? said->c_str() : std::string(said.status().message()).c_str());
  return said.ok() ? kExitOk : kExitFailed;
}

int Main(const std::string& typed, const std::vector<std::string>& args) {
  GuardTerminal();
  const absl::StatusOr<std::string> own_path = OwnPath();
  if (!own_path.ok()) return ReportFailure(kProgram, own_path.status());
  const char* const search_path = std::getenv("PATH");
  const std::string real =
      RealPython(typed.substr(typed.rfind('/') + 1),
                 search_path == nullptr ? "" : search_path,
                 own_path->substr(0, own_path->rfind('/')));
  const std::optional<ScriptCommand> command = ScriptCommandOf(args);
  const bool is_users_file = command.has_value() && command->is_common_name &&
                             access(command->path.c_str(), R_OK) == 0;
  if (command.has_value() && (!is_users_file || real.empty())) {
    if (command->program.empty()) return RunPrepareModel(*command);
    return ReportFailure(
        kProgram, BecomeSiblingProgram(command->folder, command->program,
                                       command->arguments, command->path));
  }
  if (is_users_file) {
    Say(kProgram,
        absl::StrCat("note: ", command->path, " is a file here and is run by ",
                     real, "; Requant's own is run where there is none"));
  }
  if (!real.empty()) {
    return ReportFailure(kProgram, BecomeProgram(real, args));
  }
  ReportFailure(kProgram, NoPythonError(args));
  return kExitUsage;
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  return requant::FinishOutput("python",
                               requant::Main(argv[0], {argv + 1, argv + argc}));
}
