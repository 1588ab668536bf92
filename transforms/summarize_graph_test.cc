// Runs the program as people run it.

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

TEST(SummarizeGraphProgram, PrintsASummaryAndWhatElseIsAskedFor) {
  const TestFolder folder;
  const std::string in = "--in_graph=" + folder.Write("g", GraphText(kGraph));
  EXPECT_THAT(Summarize({in}), Exits(0, ""));
  EXPECT_THAT(Summarize({in}).out,
              AllOf(StartsWith("Found 1 possible inputs: (name=x, "),
                    HasSubstr("Found 1 possible outputs: (name=y, "),
                    Not(HasSubstr("y (Softmax): [x]\n"))));
  EXPECT_THAT(Summarize({in, "--print_structure"}).out,
              EndsWith("x (Placeholder): []\ny (Softmax): [x]\n"));
  EXPECT_THAT(Summarize({in, "--format=json", "--print_structure"}).out,
              AllOf(StartsWith("{\"graph\": "), HasSubstr("\"structure\": [")));
}

TEST(SummarizeGraphProgram, ReadsTheGraphOfASavedModelThatTagsChoose) {
  tensorflow::SavedModel model;
  for (const char* tag : {"serve", "train"}) {
    auto* meta = model.add_meta_graphs();
    meta->mutable_meta_info_def()->add_tags(tag);
    *meta->mutable_graph_def() = GraphFromText(kGraph);
    auto& signature = (*meta->mutable_signature_def())[tag];
    (*signature.mutable_outputs())["y"].set_name("y:0");
  }
  const TestFolder folder;
  folder.Write("saved_model.pb", model.SerializeAsString());
  const std::string in = "--in_graph=" + folder.path();
  for (const char* path : {"", "/", "/saved_model.pb"}) {
    EXPECT_THAT(Summarize({in + path}).out,
                StartsWith("Found 1 signatures: serve\n"
                           "Signature serve output y: (name=y:0, "))
        << path;
  }
  EXPECT_THAT(Summarize({in, "--saved_model_tags=train"}).out,
              StartsWith("Found 1 signatures: train\n"));
  EXPECT_THAT(Summarize({in, "--saved_model_tags=train,gpu"}),
              Exits(1, HasSubstr("{serve}, {train}")));
}

TEST(SummarizeGraphProgram, AGraphWithMissingInputsIsReportedAndFails) {
  const TestFolder folder;
  const ProgramRun outcome = Summarize(
      {"--in_graph=" + folder.Write("broken", GraphText("a = A(gone)"))});
  EXPECT_THAT(outcome, Exits(1, HasSubstr("\"gone\" read by \"a\"")));
  EXPECT_THAT(outcome.out, HasSubstr("Op types used: 1 A\n"));
}

TEST(SummarizeGraphProgram, WrongUseAndAMissingFileFail) {
  const ProgramRun missing = Summarize({"--in_graph=/absent.pb"});
  EXPECT_THAT(missing, Exits(1, HasSubstr("absent.pb")));
  EXPECT_THAT(missing.out, IsEmpty());
  EXPECT_THAT(Summarize({}), Exits(2, HasSubstr("--in_graph is not given")));
  EXPECT_THAT(Summarize({"graph.pb"}), Exits(2));
  EXPECT_THAT(Summarize({"--in_graph=g", "--format=xml"}), Exits(2));
  EXPECT_THAT(Summarize({"--in_grph=g"}), Exits(2));
}

}  // namespace
}  // namespace requant::summarize_graph_test
