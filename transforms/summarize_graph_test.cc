// The program, run as people run it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/files/file.h"
#include "base/process/subprocess.h"
#include "graph/graph_io.h"
#include "graph/testing/graph_text.h"
#include "graph/testing/testing.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"

namespace requant::summarize_graph_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr char kGraph[] = R"(
  x = Placeholder
  y = Softmax(x)
)";

struct Outcome {
  int exit_code = -1;
  std::string output;
  // Without the notices of TensorFlow's library.
  std::string error;
};

Outcome Summarize(std::vector<std::string> args) {
  Outcome outcome;
  ChildOptions options;
  options.argv = {"transforms/summarize_graph"};
  options.argv.insert(options.argv.end(), args.begin(), args.end());
  options.on_stdout = [&](std::string_view line) {
    outcome.output.append(line).push_back('\n');
  };
  options.on_stderr = [&](std::string_view line) {
    if (line.substr(0, 16) == "summarize_graph:") outcome.error.append(line);
  };
  const auto result = RunChild(options);
  EXPECT_TRUE(result.ok()) << result.status();
  if (result.ok()) outcome.exit_code = result->exit_code;
  return outcome;
}

std::string Path(const std::string& name) { return testing::TempDir() + name; }

std::string WriteText(const std::string& name, const std::string& text) {
  EXPECT_TRUE(WriteFileAtomically(Path(name), text).ok());
  return Path(name);
}

TEST(SummarizeGraphProgram, ReadsTextAndBinaryGraphsAlike) {
  const std::string text = WriteText("graph", GraphText(kGraph));
  const Outcome from_text = Summarize({"--in_graph=" + text});
  EXPECT_EQ(from_text.exit_code, 0);
  EXPECT_THAT(from_text.error, IsEmpty());
  EXPECT_THAT(from_text.output,
              AllOf(StartsWith("Found 1 possible inputs: (name=x, "),
                    HasSubstr("Found 1 possible outputs: (name=y, op=Softmax) "
                              "\n"),
                    Not(HasSubstr("y (Softmax): [x]\n"))));
  ASSERT_TRUE(
      WriteGraph(GraphFromText(kGraph), text, GraphFormat::kBinary).ok());
  EXPECT_EQ(Summarize({"--in_graph=" + text}).output, from_text.output);
}

TEST(SummarizeGraphProgram, PrintsTheStructureAfterTheSummary) {
  const std::string output =
      Summarize({"--in_graph=" + WriteText("graph", GraphText(kGraph)),
                 "--print_structure"})
          .output;
  EXPECT_THAT(output, testing::EndsWith("x (Placeholder): []\n"
                                        "y (Softmax): [x]\n"));
}

TEST(SummarizeGraphProgram, PrintsJson) {
  EXPECT_THAT(Summarize({"--in_graph=" + WriteText("graph", GraphText(kGraph)),
                         "--format=json", "--print_structure"})
                  .output,
              AllOf(StartsWith("{\"graph\": "), HasSubstr("\"structure\": [")));
}

class SavedModelProgram : public testing::Test {
 protected:
  void SetUp() override {
    tensorflow::SavedModel model;
    for (const char* tag : {"serve", "train"}) {
      auto* meta = model.add_meta_graphs();
      meta->mutable_meta_info_def()->add_tags(tag);
      *meta->mutable_graph_def() = GraphFromText(kGraph);
      auto& signature = (*meta->mutable_signature_def())[tag];
      (*signature.mutable_outputs())["y"].set_name("y:0");
    }
    mkdir(directory_.c_str(), 0777);
    ASSERT_TRUE(WriteFileAtomically(directory_ + "/saved_model.pb",
                                    model.SerializeAsString())
                    .ok());
  }
  std::string directory_ = Path("saved");
};

TEST_F(SavedModelProgram, ListsSignaturesOfADirectoryAndOfItsFile) {
  for (const std::string path : {"", "/", "/saved_model.pb"}) {
    EXPECT_THAT(Summarize({"--in_graph=" + directory_ + path}).output,
                StartsWith("Found 1 signatures: serve\n"
                           "Signature serve output y: (name=y:0, "))
        << path;
  }
}

TEST_F(SavedModelProgram, ChoosesTheGraphByTags) {
  EXPECT_THAT(
      Summarize({"--in_graph=" + directory_, "--saved_model_tags=train"})
          .output,
      StartsWith("Found 1 signatures: train\n"));
  const Outcome wrong =
      Summarize({"--in_graph=" + directory_, "--saved_model_tags=train,gpu"});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.error, HasSubstr("{serve}, {train}"));
}

TEST(SummarizeGraphProgram, AGraphWithMissingInputsIsReportedAndFails) {
  const Outcome outcome = Summarize(
      {"--in_graph=" +
           WriteText("broken", "node { name: 'a' op: 'A' input: 'gone' }"),
       "--print_structure"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.error, HasSubstr("\"gone\" read by \"a\""));
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("Op types used: 1 A\n"),
                                    HasSubstr("a (A): [gone]\n")));
}

TEST(SummarizeGraphProgram, NamesAFileThatIsMissingOrNoGraph) {
  const Outcome missing = Summarize({"--in_graph=" + Path("absent.pb")});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.error, HasSubstr("absent.pb"));
  EXPECT_THAT(missing.output, IsEmpty());
  const Outcome prose =
      Summarize({"--in_graph=" + WriteText("prose", "Dear all")});
  EXPECT_EQ(prose.exit_code, 1);
  EXPECT_THAT(prose.error, HasSubstr("is not a TensorFlow graph"));
}

TEST(SummarizeGraphProgram, WrongUseEndsWithTwo) {
  const Outcome none = Summarize({});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.error, HasSubstr("--in_graph is not given"));
  EXPECT_EQ(Summarize({"graph.pb"}).exit_code, 2);
  EXPECT_EQ(Summarize({"--in_graph=g", "--format=xml"}).exit_code, 2);
  EXPECT_EQ(Summarize({"--in_grph=g"}).exit_code, 2);
}

TEST(SummarizeGraphProgram, HelpListsItsFlags) {
  const Outcome help = Summarize({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.output,
              AllOf(HasSubstr("in_graph"), HasSubstr("print_structure"),
                    HasSubstr("saved_model_tags")));
}

}  // namespace
}  // namespace requant::summarize_graph_test
