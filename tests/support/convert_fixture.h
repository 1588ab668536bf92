#ifndef REQUANT_TESTS_SUPPORT_CONVERT_FIXTURE_H_
#define REQUANT_TESTS_SUPPORT_CONVERT_FIXTURE_H_

// For tests of requant convert, dump_graph and pb_to_pbtxt as people run them.

#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/files/file.h"
#include "base/files/files.h"
#include "graph/graph_io.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"
#include "tests/support/program_runs.h"

namespace requant {

inline constexpr char kConvert[] = "runtime/convert_model";
inline constexpr char kTiny[] = "workflows/gptj_tiny";
inline constexpr char kTinyModel[] = "workflows/gptj_tiny/saved_model/1";
inline constexpr char kData[] = "variables/variables.data-00000-of-00001";

inline std::string Content(const std::string& path) {
  const auto content = ReadFile(path);
  EXPECT_OK(content);
  return content.ok() ? *content : "";
}

// Returns the files below a folder, by their paths from it on.
inline std::set<std::string> FilesIn(const std::string& folder) {
  const auto files = FilesBelow(folder);
  EXPECT_OK(files);
  return {files->begin(), files->end()};
}

inline void ExpectSameFiles(const std::string& a, const std::string& b) {
  ASSERT_EQ(FilesIn(a), FilesIn(b));
  for (const std::string& file : FilesIn(a)) {
    EXPECT_EQ(Content(absl::StrCat(a, "/", file)),
              Content(absl::StrCat(b, "/", file)))
        << file;
  }
}

inline int CountOp(const GraphDef& graph, const std::string& op) {
  int count = 0;
  const auto add = [&](const auto& nodes) {
    for (const NodeDef& node : nodes) count += node.op() == op;
  };
  add(graph.node());
  for (const auto& function : graph.library().function()) {
    add(function.node_def());
  }
  return count;
}

inline std::string TinyFlag() {
  return "--saved_model=" + std::filesystem::absolute(kTiny).string();
}

class ConvertTest : public testing::Test {
 protected:
  // Runs in the test's folder, so that what has a default is there.
  ProgramRun Run(const Words& arguments,
                 const std::string& program = kConvert) {
    return RunIn(folder, program, arguments);
  }
  static std::string Absolute(const std::string& path) {
    return std::filesystem::absolute(path).string();
  }
  // Converts without writing the two graphs.
  ProgramRun ConvertOnly(const Words& arguments) {
    return Run(Joined(arguments,
                      {"--extracted_graph_def=", "--converted_graph_def="}));
  }
  ProgramRun ConvertTiny(const Words& flags) {
    return ConvertOnly(Joined({TinyFlag()}, flags));
  }
  ProgramRun ConvertModel(const Words& flags) {
    return ConvertOnly(Joined({"--saved_model=model"}, flags));
  }
  // Makes a copy of a model whose files may be changed.
  std::string Copy(const std::string& model, const std::string& name) {
    for (const std::string& file : FilesIn(model)) {
      const std::filesystem::path path =
          absl::StrCat(folder.Path(name), "/", file);
      std::filesystem::create_directories(path.parent_path());
      EXPECT_OK(
          WriteFileAtomically(path, Content(absl::StrCat(model, "/", file))));
    }
    return folder.Path(name);
  }
  // Makes a copy of the tiny model as "model", changed by `edit`.
  template <typename Edit>
  void CopyTinyModel(const Edit& edit) {
    Copy(kTinyModel, "model");
    tensorflow::SavedModel saved;
    EXPECT_TRUE(saved.ParseFromString(folder.Read("model/saved_model.pb")));
    edit(&saved);
    folder.Write("model/saved_model.pb", DeterministicBytes(saved));
  }
  // Returns how many QuantizeV2 a model has.
  int Pairs(const std::string& model, const std::set<std::string>& tags = {}) {
    return CountOp(*ReadGraph(folder.Path(model), tags), "QuantizeV2");
  }
  // Expects one sentence with all of this, and nothing but `left` there.
  void ExpectRefused(const ProgramRun& run, const std::string& message,
                     const std::vector<std::string>& left) {
    EXPECT_THAT(run, Refuses(message));
    EXPECT_THAT(folder.Names(), testing::UnorderedElementsAreArray(left));
  }

  TestFolder folder;
};

}  // namespace requant

#endif  // REQUANT_TESTS_SUPPORT_CONVERT_FIXTURE_H_
