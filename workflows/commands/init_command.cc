#include <gflags/gflags.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/program/flags.h"
#include "base/status_macros.h"
#include "base/text/printable.h"
#include "runtime/session/job_flags.h"
#include "workflows/commands/commands.h"
#include "workflows/commands/init_files.h"

DEFINE_string(data, "",
              "Records: CSV, JSON lines, .npz or TFRecord files or globs, "
              "separated by commas; empty: to be filled in.");
DEFINE_string(signature, "",
              "The SavedModel's signature that the records are for; empty: "
              "serving_default, or the only one.");
DEFINE_bool(overwrite, false, "Replace files that are there.");

namespace requant {
namespace {

namespace fs = std::filesystem;

constexpr char kInitProgram[] = "requant init";

ProgramHelp InitHelp() {
  ProgramHelp help;
  help.name = kInitProgram;
  help.summary =
      "starts a workflow for your own model: looks at the model and at "
      "records, writes a dataset declaration (data.textproto) and a workflow "
      "(workflow.textproto) with comments into a folder, and says what it "
      "guessed and what is left to fill in. MODEL is a SavedModel or a frozen "
      "graph.";
  help.usage =
      "requant init my_model --data=records.csv\n"
      "requant init my_model --data='train-*.tfrecords' --signature=classify\n"
      "requant init frozen.pb --data=records.npz --output=int8";
  help.flag_files = {__FILE__, OutputFlagFile()};
  help.repeatable_flags = {"data"};
  help.descriptions = {
      {"output", "The folder for the files; empty: MODEL_workflow."}};
  help.footer =
      "Columns, keys, arrays or features that are named as the model's inputs "
      "are taken.\n"
      "Exit codes: 0 written, 1 failed (nothing was written), 2 wrong usage.";
  return help;
}

// Writes both files into the folder, which is made if it is missing; all or
// nothing.
absl::Status WriteInitFiles(const InitFiles& files, const std::string& folder,
                            const std::vector<std::string>& inputs) {
  const std::string declaration = absl::StrCat(folder, "/", kInitDeclaration);
  const std::string workflow = absl::StrCat(folder, "/", kInitWorkflow);
  std::error_code error;
  for (const std::string& file : {declaration, workflow}) {
    if (FLAGS_overwrite || !fs::exists(file, error)) continue;
    return absl::AlreadyExistsError(
        absl::StrCat(file,
                     " exists: name another folder by --output, or replace the "
                     "file by --overwrite"));
  }
  const bool is_new = fs::create_directory(folder, error);
  if (error) {
    return absl::PermissionDeniedError(
        absl::StrCat("cannot make the folder ", folder, ": ", error.message()));
  }
  const auto write = [&]() -> absl::Status {
    REQUANT_RETURN_IF_ERROR(CheckOutputs(inputs, {declaration, workflow}));
    return WriteFilesAtomically(
        {{declaration, [&](int fd) { return WriteAll(fd, files.declaration); }},
         {workflow, [&](int fd) { return WriteAll(fd, files.workflow); }}});
  };
  const absl::Status written = write();
  if (!written.ok() && is_new) fs::remove(folder, error);
  return written;
}

void PrintList(std::string_view title,
               const std::vector<std::string>& sentences) {
  if (sentences.empty()) return;
  std::string text = absl::StrCat(title, "\n");
  for (const std::string& sentence : sentences) {
    std::string lines;
    AppendWrapped(Printable(sentence), 4, &lines);
    // The first line is marked.
    lines[2] = '-';
    text += lines;
  }
  std::fputs(text.c_str(), stdout);
}

absl::Status Init(const std::string& path) {
  for (const std::string& name : SplitList(FLAGS_data)) {
    std::error_code error;
    const size_t equals = name.find('=');
    if (equals == name.npos || fs::exists(name, error)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--data=", name,
        ": a workflow is for one signature; name it by "
        "--signature=",
        name.substr(0, equals), " with --data=", name.substr(equals + 1),
        ", or give each its records in requant quantize --saved_model"));
  }
  REQUANT_ASSIGN_OR_RETURN(const InitModel model,
                           ReadInitModel(path, FLAGS_signature));
  std::string folder = OutputFlag().empty()
                           ? absl::StrCat(model.name, "_workflow")
                           : OutputFlag();
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  std::vector<std::string> inputs = SplitList(FLAGS_data);
  REQUANT_ASSIGN_OR_RETURN(const InitFiles files,
                           MakeInitFiles(model, inputs, folder));
  inputs.push_back(model.path);
  REQUANT_RETURN_IF_ERROR(WriteInitFiles(files, folder, inputs));
  const std::string workflow = absl::StrCat(folder, "/", kInitWorkflow);
  std::printf("Wrote %s and %s/%s.\n", Printable(workflow).c_str(),
              Printable(folder).c_str(), kInitDeclaration);
  PrintList("Guessed:", files.guessed);
  PrintList(absl::StrCat("Left to do in ", Printable(folder), "/",
                         kInitDeclaration, ":"),
            files.gaps);
  std::printf("To go on%s:\n  requant plan %s\n  requant run %s\n",
              files.gaps.empty() ? "" : ", once that is done",
              ShellQuoted(workflow).c_str(), ShellQuoted(workflow).c_str());
  return absl::OkStatus();
}

}  // namespace

int RunInitCommand(const std::vector<std::string>& args) {
  std::vector<std::string> positional;
  if (auto code = ParseFlags(args, InitHelp(), &positional)) return *code;
  if (positional.size() != 1) {
    return ReportUsage(kInitProgram,
                       "give one model, a SavedModel or a frozen graph");
  }
  const absl::Status status = Init(positional[0]);
  return status.ok() ? kExitOk : ReportFailure(kInitProgram, status);
}

}  // namespace requant
