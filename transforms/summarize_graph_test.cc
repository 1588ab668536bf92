// The program, run as people run it.

#include <sys/stat.h>

#include "base/files/file.h"
#include "graph/graph_io.h"
#include "graph/testing/program.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"

namespace requant::summarize_graph_test {
namespace {

constexpr char kGraph[] = R"(
  x = Placeholder
  y = Softmax(x)
)";

ProgramRun Summarize(const std::vector<std::string>& arguments) {
  return RunProgram("transforms/summarize_graph", arguments);
}

std::string Path(const std::string& name) { return testing::TempDir() + name; }

std::string WriteText(const std::string& name, const std::string& text) {
  EXPECT_OK(WriteFileAtomically(Path(name), text));
  return Path(name);
}

TEST(SummarizeGraphProgram, ReadsTextAndBinaryGraphsAlike) {
  const std::string text = WriteText("graph", GraphText(kGraph));
  const ProgramRun from_text = Summarize({"--in_graph=" + text});
  EXPECT_THAT(from_text, Exits(0, ""));
  EXPECT_THAT(
      from_text.out,
      AllOf(StartsWith("Found 1 possible inputs: (name=x, "),
            HasSubstr("Found 1 possible outputs: (name=y, op=Softmax) \n"),
            Not(HasSubstr("y (Softmax): [x]\n"))));
  ASSERT_OK(WriteGraph(GraphFromText(kGraph), text, GraphFormat::kBinary));
  EXPECT_EQ(Summarize({"--in_graph=" + text}).out, from_text.out);
}

TEST(SummarizeGraphProgram, PrintsTheStructureAfterTheSummary) {
  const std::string output =
      Summarize({"--in_graph=" + WriteText("graph", GraphText(kGraph)),
                 "--print_structure"})
          .out;
  EXPECT_THAT(output, EndsWith("x (Placeholder): []\n"
                               "y (Softmax): [x]\n"));
}

TEST(SummarizeGraphProgram, PrintsJson) {
  EXPECT_THAT(Summarize({"--in_graph=" + WriteText("graph", GraphText(kGraph)),
                         "--format=json", "--print_structure"})
                  .out,
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
    ASSERT_OK(WriteFileAtomically(directory_ + "/saved_model.pb",
                                  model.SerializeAsString()));
  }
  std::string directory_ = Path("saved");
};

TEST_F(SavedModelProgram, ListsSignaturesOfADirectoryAndOfItsFile) {
  for (const std::string path : {"", "/", "/saved_model.pb"}) {
    EXPECT_THAT(Summarize({"--in_graph=" + directory_ + path}).out,
                StartsWith("Found 1 signatures: serve\n"
                           "Signature serve output y: (name=y:0, "))
        << path;
  }
}

TEST_F(SavedModelProgram, ChoosesTheGraphByTags) {
  EXPECT_THAT(
      Summarize({"--in_graph=" + directory_, "--saved_model_tags=train"}).out,
      StartsWith("Found 1 signatures: train\n"));
  EXPECT_THAT(
      Summarize({"--in_graph=" + directory_, "--saved_model_tags=train,gpu"}),
      Exits(1, HasSubstr("{serve}, {train}")));
}

TEST(SummarizeGraphProgram, AGraphWithMissingInputsIsReportedAndFails) {
  const ProgramRun outcome =
      Summarize({"--in_graph=" + WriteText("broken", GraphText("a = A(gone)")),
                 "--print_structure"});
  EXPECT_THAT(outcome, Exits(1, HasSubstr("\"gone\" read by \"a\"")));
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("Op types used: 1 A\n"),
                                 HasSubstr("a (A): [gone]\n")));
}

TEST(SummarizeGraphProgram, NamesAFileThatIsMissingOrNoGraph) {
  const ProgramRun missing = Summarize({"--in_graph=" + Path("absent.pb")});
  EXPECT_THAT(missing, Exits(1, HasSubstr("absent.pb")));
  EXPECT_THAT(missing.out, IsEmpty());
  EXPECT_THAT(Summarize({"--in_graph=" + WriteText("prose", "Dear all")}),
              Exits(1, HasSubstr("is not a TensorFlow graph")));
}

TEST(SummarizeGraphProgram, WrongUseEndsWithTwo) {
  EXPECT_THAT(Summarize({}), Exits(2, HasSubstr("--in_graph is not given")));
  EXPECT_THAT(Summarize({"graph.pb"}), Exits(2));
  EXPECT_THAT(Summarize({"--in_graph=g", "--format=xml"}), Exits(2));
  EXPECT_THAT(Summarize({"--in_grph=g"}), Exits(2));
}

TEST(SummarizeGraphProgram, HelpListsItsFlags) {
  const ProgramRun help = Summarize({"--help"});
  EXPECT_THAT(help, Exits(0));
  EXPECT_THAT(help.out,
              AllOf(HasSubstr("in_graph"), HasSubstr("print_structure"),
                    HasSubstr("saved_model_tags")));
}

}  // namespace
}  // namespace requant::summarize_graph_test
