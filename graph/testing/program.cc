#include "graph/testing/program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/process/subprocess.h"
#include "base/process/tensorflow_child.h"
#include "graph/graph_io.h"

namespace requant {

namespace fs = std::filesystem;

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
  EXPECT_TRUE(result.ok()) << result.status();
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

TestFolder::TestFolder() {
  path_ = testing::TempDir() + "/folder.XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) ADD_FAILURE() << "no folder " << path_;
}

TestFolder::~TestFolder() { fs::remove_all(path_); }

std::string TestFolder::Path(const std::string& name) const {
  return path_ + "/" + name;
}

std::string TestFolder::Write(const std::string& name,
                              const std::string& content) const {
  const absl::Status status = WriteFileAtomically(Path(name), content);
  EXPECT_TRUE(status.ok()) << status;
  return Path(name);
}

std::string TestFolder::WriteText(const std::string& name,
                                  const tensorflow::GraphDef& graph) const {
  const absl::Status status = WriteGraph(graph, Path(name), GraphFormat::kText);
  EXPECT_TRUE(status.ok()) << status;
  return Path(name);
}

std::string TestFolder::Copy(const std::string& source,
                             const std::string& name) const {
  fs::copy(source, Path(name), fs::copy_options::recursive);
  for (const auto& entry : fs::recursive_directory_iterator(Path(name))) {
    fs::permissions(entry, fs::perms::owner_write, fs::perm_options::add);
  }
  return Path(name);
}

std::string TestFolder::Read(const std::string& name) const {
  const auto content = ReadFile(Path(name));
  EXPECT_TRUE(content.ok()) << content.status();
  return content.ok() ? *content : "";
}

tensorflow::GraphDef TestFolder::ReadGraphFile(const std::string& name) const {
  const auto graph = ReadGraph(Path(name));
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *graph : tensorflow::GraphDef();
}

std::vector<std::string> TestFolder::Names() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path_)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

ProgramRun TransformGraphRunner::Transform(
    const std::string& transforms, const tensorflow::GraphDef& graph,
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
