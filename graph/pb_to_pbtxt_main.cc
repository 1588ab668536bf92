// pb_to_pbtxt (requant pb_to_pbtxt): writes a graph as readable text.

#include <gflags/gflags.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "base/program/flags.h"
#include "base/status_macros.h"
#include "base/text/printable.h"
#include "graph/graph_io.h"

namespace requant {
namespace {

const char* const kProgram = ProgramName();
constexpr char kDefaultInput[] = "converted_graph_def.pb";

ProgramHelp Help() {
  ProgramHelp help;
  help.name = kProgram;
  help.summary =
      "writes a graph as text: a binary GraphDef or MetaGraphDef, gzipped or "
      "not, or a SavedModel's graph. The bodies of functions are in it too, "
      "as node_def.";
  help.usage =
      "$0                        # converted_graph_def.pb\n"
      "$0 extracted_graph_def.pb\n"
      "$0 graph.pb graph.txt";
  help.footer =
      "Without an output the text is beside the input, with the ending "
      ".pbtxt.\nExit code: 0 done, 1 failed (nothing was written), 2 usage.";
  return help;
}

// Returns "a.pbtxt" for "a.pb" and "model.pbtxt" for the folder "model/".
std::string Beside(const std::string& input) {
  std::string_view name = input;
  while (name.size() > 1 && absl::ConsumeSuffix(&name, "/")) {
  }
  absl::ConsumeSuffix(&name, ".gz");
  absl::ConsumeSuffix(&name, ".pb");
  return absl::StrCat(name, ".pbtxt");
}

absl::Status Convert(const std::string& input, const std::string& output) {
  REQUANT_RETURN_IF_ERROR(CheckDistinct({input}, {output}));
  REQUANT_RETURN_IF_ERROR(CheckWritable(output));
  CleanUpWhenInterrupted(kProgram);
  REQUANT_ASSIGN_OR_RETURN(const tensorflow::GraphDef graph, ReadGraph(input));
  REQUANT_RETURN_IF_ERROR(WriteGraph(graph, output, GraphFormat::kText));
  std::printf("%s -> %s\n", Printable(input).c_str(),
              Printable(output).c_str());
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  std::vector<std::string> names;
  if (auto code = ParseFlags(argc, argv, Help(), &names)) return *code;
  if (names.size() > 2) {
    return ReportUsage(kProgram,
                       absl::StrCat("unexpected argument \"", names[2], "\""));
  }
  const std::string input = names.empty() ? kDefaultInput : names[0];
  const absl::Status status =
      Convert(input, names.size() < 2 ? Beside(input) : names[1]);
  return status.ok() ? kExitOk : ReportFailure(kProgram, status);
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  return requant::FinishOutput(requant::kProgram, requant::Main(argc, argv));
}
