// dump_graph (requant dump_graph): writes a SavedModel's graph to a file.

#include <gflags/gflags.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files/file.h"
#include "base/program/flags.h"
#include "base/status_macros.h"
#include "base/text/printable.h"
#include "graph/freeze/freeze.h"
#include "graph/saved_model/saved_model_file.h"

DEFINE_string(input_model, "",
              "the SavedModel: its folder, or one that has it in saved_model, "
              "in a version (1), or in saved_model/1");
DEFINE_string(output, "./dumped_graph.pb", "the GraphDef to write, binary");
DEFINE_string(tags, "",
              "which graph of the SavedModel, tags separated by commas; "
              "empty: the only one, or the one tagged serve");

namespace requant {
namespace {

const char* const kProgram = ProgramName();

ProgramHelp Help() {
  ProgramHelp help;
  help.name = kProgram;
  help.summary =
      "writes the graph of a SavedModel, with its functions, as a GraphDef: "
      "the bytes that the model has. Variables stay where they are.";
  help.usage =
      "$0 --input_model=converted_gpt-j-6B\n"
      "$0 --input_model=model --output=graph.pb";
  help.flag_files = {__FILE__};
  help.aliases = {{"out", "output"}};
  help.footer = "Exit code: 0 done, 1 failed (nothing was written), 2 usage.";
  return help;
}

absl::Status Dump() {
  REQUANT_ASSIGN_OR_RETURN(const std::string directory,
                           FindSavedModel(FLAGS_input_model));
  ModelFiles files;
  files.saved_model = directory;
  REQUANT_RETURN_IF_ERROR(CheckDistinct(FilesOf(files), {FLAGS_output}));
  REQUANT_RETURN_IF_ERROR(CheckWritable(FLAGS_output));
  CleanUpWhenInterrupted(kProgram);
  REQUANT_ASSIGN_OR_RETURN(
      const SavedModelFile file,
      SavedModelFile::Read(directory,
                           absl::StrSplit(FLAGS_tags, ',', absl::SkipEmpty())));
  REQUANT_RETURN_IF_ERROR(
      WriteFileAtomically(FLAGS_output, file.graph_bytes()));
  const tensorflow::GraphDef& graph = file.meta().graph_def();
  std::printf("%s -> %s: %d nodes and %d functions, %.3f MB\n",
              Printable(directory).c_str(), Printable(FLAGS_output).c_str(),
              graph.node_size(), graph.library().function_size(),
              file.graph_bytes().size() / 1e6);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  std::vector<std::string> positional;
  if (auto code = ParseFlags(argc, argv, Help(), &positional)) return *code;
  if (!positional.empty()) {
    return ReportUsage(
        kProgram, absl::StrCat("unexpected argument \"", positional[0], "\""));
  }
  if (FLAGS_input_model.empty()) {
    return ReportUsage(kProgram, "--input_model is missing");
  }
  const absl::Status status = Dump();
  return status.ok() ? kExitOk : ReportFailure(kProgram, status);
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  return requant::FinishOutput(requant::kProgram, requant::Main(argc, argv));
}
