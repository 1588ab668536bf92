// diff_graphs: shows the differences between two graphs.

#include <gflags/gflags.h>

#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/program/flags.h"
#include "graph/diff.h"
#include "graph/graph_io.h"

DEFINE_string(format, "text", "\"text\" for people or \"json\" for programs.");
DEFINE_int32(max_nodes, 20,
             "How many names of each kind the text lists; 0 for all.");
DEFINE_string(tags, "",
              "The tags, separated by commas, of the graph to take from a "
              "SavedModel; by default the only one or the one for serving.");

namespace {

const char* const kName = requant::ProgramName();
// These are the exit codes of diff.
constexpr int kExitDifferent = 1;
constexpr int kExitTrouble = 2;

requant::ProgramHelp Help() {
  requant::ProgramHelp help;
  help.name = kName;
  help.summary =
      "shows what differs between two graphs: nodes, ops, bytes and functions. "
      "The order of nodes and attributes is ignored.";
  help.usage = "$0 [flags] BEFORE AFTER";
  help.flag_files = {__FILE__};
  help.footer =
      "A graph is a binary or text GraphDef, a MetaGraphDef or a SavedModel "
      "directory.\nExit codes: 0 the graphs are equal, 1 they differ, 2 "
      "trouble.";
  return help;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> paths;
  if (const auto code = requant::ParseFlags(argc, argv, Help(), &paths)) {
    return *code;
  }
  if (paths.size() != 2) {
    return requant::ReportUsage(
        kName, absl::StrCat("takes two graphs, not ", paths.size()));
  }
  if (FLAGS_format != "text" && FLAGS_format != "json") {
    return requant::ReportUsage(
        kName, absl::StrCat("--format is \"text\" or \"json\", not \"",
                            FLAGS_format, "\""));
  }
  const std::set<std::string> tags =
      absl::StrSplit(FLAGS_tags, ',', absl::SkipEmpty());
  std::vector<tensorflow::GraphDef> graphs;
  for (const std::string& path : paths) {
    auto graph = requant::ReadGraph(path, tags);
    if (!graph.ok()) {
      requant::ReportFailure(kName, graph.status());
      return kExitTrouble;
    }
    graphs.push_back(*std::move(graph));
  }
  const requant::GraphDiff diff = requant::DiffGraphs(graphs[0], graphs[1]);
  const std::string text = FLAGS_format == "json"
                               ? requant::DiffAsJson(diff)
                               : requant::DiffAsText(diff, FLAGS_max_nodes);
  std::fputs(text.c_str(), stdout);
  if (requant::FinishOutput(kName, requant::kExitOk) != requant::kExitOk) {
    return kExitTrouble;
  }
  return diff.equal() ? requant::kExitOk : kExitDifferent;
}
