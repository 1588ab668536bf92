#include "graph/testing/program.h"

#include <cstdlib>

#include "base/process/subprocess.h"
#include "base/process/tensorflow_child.h"
#include "graph/graph_io.h"

namespace requant {

std::vector<std::string> CommandLine(
    const std::string& program, const std::vector<std::string>& arguments,
    const std::vector<std::string>& variables) {
  std::vector<std::string> line = {"/usr/bin/env", "-u",
                                   "TF_ENABLE_ONEDNN_OPTS"};
  if (UsersIsaCap().empty()) {
    line.insert(line.end(), {"-u", "ONEDNN_MAX_CPU_ISA"});
  }
  line.insert(line.end(), variables.begin(), variables.end());
  line.push_back(program);
  line.insert(line.end(), arguments.begin(), arguments.end());
  return line;
}

ProgramRun RunProgram(const std::string& program,
                      const std::vector<std::string>& arguments,
                      const std::vector<std::string>& variables) {
  ProgramRun run;
  ChildOptions options;
  options.argv = CommandLine(program, arguments, variables);
  options.on_stdout = [&](std::string_view line) {
    run.out.append(line).append("\n");
  };
  options.on_stderr = [&](std::string_view line) {
    run.error.append(line).append("\n");
  };
  const auto result = RunChild(options);
  EXPECT_OK(result);
  if (result.ok()) {
    run.exit_code =
        result->signal == 0 ? result->exit_code : 128 + result->signal;
  }
  return run;
}

void LetSegfaultsPass() {
  const char* options = std::getenv("ASAN_OPTIONS");
  setenv(
      "ASAN_OPTIONS",
      absl::StrCat(options == nullptr ? "" : options, ":handle_segv=0").c_str(),
      /*overwrite=*/1);
}

std::string TestFolder::WriteText(const std::string& name,
                                  const GraphDef& graph) const {
  EXPECT_OK(WriteGraph(graph, Path(name), GraphFormat::kText));
  return Path(name);
}

GraphDef TestFolder::ReadGraphFile(const std::string& name) const {
  const auto graph = ReadGraph(Path(name));
  EXPECT_OK(graph);
  return graph.value_or(GraphDef());
}

ProgramRun TransformGraphRunner::Transform(
    const std::string& transforms, const GraphDef& graph,
    const std::vector<std::string>& more_arguments,
    const std::string& program) {
  std::vector<std::string> arguments = {
      "--in_graph=" + folder.WriteText("g.pbtxt", graph),
      "--out_graph=" + folder.Path("out.pb"), "--transforms=" + transforms};
  arguments.insert(arguments.end(), more_arguments.begin(),
                   more_arguments.end());
  return RunProgram(program, arguments);
}

}  // namespace requant
