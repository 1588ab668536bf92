#include "workflows/commands/init_files.h"

#include <filesystem>

#include "graph/testing/program.h"
#include "runtime/datasets/dataset_spec.h"
#include "workflows/language/workflow_file.h"

namespace requant::init_files_test {
namespace {

namespace fs = std::filesystem;

class InitFilesTest : public testing::Test {
 protected:
  InitFilesTest() { fs::create_directory(folder_.Path("m")); }

  // Returns a model with an input "x" of `batch` single floats.
  InitModel Model(int batch = -1) const {
    InitModel model;
    model.path = folder_.Path("m");
    model.is_saved_model = true;
    model.name = "m";
    model.signature_key = "odd\"${key}";
    auto& input = (*model.signature.mutable_inputs())["x"];
    input.set_name("serving_x:0");
    input.set_dtype(tensorflow::DT_FLOAT);
    input.mutable_tensor_shape()->add_dim()->set_size(batch);
    auto& output = (*model.signature.mutable_outputs())["y"];
    output = input;
    output.set_name("StatefulPartitionedCall:0");
    return model;
  }

  // Returns CSV records of "x" and more columns.
  std::string Csv(int count, const std::string& header,
                  const std::string& values) const {
    std::string text = header + "\n";
    for (int i = 0; i < count; ++i) absl::StrAppend(&text, i, values, "\n");
    return folder_.Write("data.csv", text);
  }

  InitFiles Files(const InitModel& model,
                  const std::vector<std::string>& data) const {
    const auto files = MakeInitFiles(model, data, folder_.Path("new"));
    EXPECT_OK(files);
    return files.value_or(InitFiles());
  }

  // Returns the workflow as it is read from its file.
  WorkflowFile Read(const InitFiles& files) const {
    fs::create_directory(folder_.Path("new"));
    folder_.Write("new/data.textproto", files.declaration);
    const auto read = ReadWorkflowFile(
        folder_.Write("new/workflow.textproto", files.workflow), {});
    EXPECT_OK(read);
    return read.value_or(WorkflowFile());
  }

  const TestFolder folder_;
};

TEST_F(InitFilesTest, DividesTheRecordsOfOneFile) {
  const InitFiles files = Files(Model(), {Csv(10, "x,label", ",1")});
  EXPECT_THAT(files.gaps, IsEmpty());
  EXPECT_EQ(files.guessed.back(),
            "of the 10 records, the first 8 are for calibration and the others "
            "for verification");
  const Workflow workflow = Read(files).workflow;
  const Records& judged = workflow.evaluation(0).on();
  EXPECT_EQ(judged.skip(), "8");
  EXPECT_EQ(judged.records(), "2");
  EXPECT_EQ(judged.signature(), "odd\"${key}");
  const Records& calibrated = workflow.stage(1).export_().on();
  EXPECT_EQ(calibrated.records(), "8");
  EXPECT_EQ(calibrated.signature(), "odd\"${key}");
  EXPECT_OK(ReadDatasetSpec(folder_.Path("new/data.textproto")));
}

TEST_F(InitFilesTest, TakesTenThousandOfManyRecordsForEach) {
  const WorkflowFile file =
      Read(Files(Model(), {Csv(12'500, "x,label", ",1")}));
  EXPECT_EQ(file.workflow.evaluation(0).on().skip(), "10000");
  EXPECT_EQ(file.workflow.evaluation(0).on().records(), "10000");
}

TEST_F(InitFilesTest, SaysThatRecordsCannotBeReadOrCompared) {
  const InitFiles unread = Files(Model(), {Csv(3, "x,label", "z,1")});
  EXPECT_THAT(unread.gaps,
              ElementsAre(AllOf(HasSubstr("the records cannot be read: "),
                                HasSubstr("data.csv"))));
  EXPECT_THAT(unread.declaration,
              HasSubstr("# To fill in: the records cannot be read:\n"));
  EXPECT_THAT(Files(Model(), {Csv(1, "x", "")}).gaps,
              ElementsAre(HasSubstr("there is only one record")));
}

TEST_F(InitFilesTest, SetsTheGatesThatCanBeJudged) {
  const auto gates = [&](const InitFiles& files) {
    const Gates gates = Read(files).workflow.evaluation(0).gates();
    return absl::StrCat(
        gates.has_max_accuracy_drop() ? absl::StrCat(gates.max_accuracy_drop())
                                      : "unset",
        ", ",
        gates.has_min_agreement() ? absl::StrCat(gates.min_agreement())
                                  : "unset");
  };
  EXPECT_EQ(gates(Files(Model(), {Csv(10, "x,label", ",1")})), "0.5, 0.97");
  EXPECT_EQ(gates(Files(Model(), {Csv(10, "x", "")})), "unset, 0.97");
  const InitFiles number = Files(Model(), {Csv(10, "x,label", ",7.5")});
  EXPECT_EQ(gates(number), "-1, unset");
  EXPECT_THAT(number.guessed.back(), HasSubstr("no limit is set"));
}

TEST_F(InitFilesTest, TakesTheModelsBatchSize) {
  const WorkflowFile file = Read(Files(Model(32), {Csv(99, "x", "")}));
  EXPECT_EQ(file.workflow.evaluation(0).on().batch_size(), "32");
}

TEST_F(InitFilesTest, FindsWhatAGraphTakesAndGives) {
  const std::string path = folder_.WriteText(
      "-my graph.v2.pbtxt",
      GraphFromText("x = Placeholder dtype=float shape=<?,4>\n"
                    "w = float<4,1>{1,2,3,4}\n"
                    "y = MatMul(x, w) T=float\n"
                    "p = Softmax(y) T=float\n"));
  const auto model = ReadInitModel(path, "");
  ASSERT_OK(model);
  EXPECT_EQ(model->name, "my_graph.v2");
  const InitFiles files = Files(*model, {});
  EXPECT_THAT(files.declaration,
              HasSubstr("input { feature: \"x\" placeholder: \"x\" dtype: "
                        "\"float\" shape: [4] }\n"));
  const Workflow workflow = Read(files).workflow;
  EXPECT_THAT(workflow.stage(1).quantize().output_node(), ElementsAre("p"));
  EXPECT_THAT(ReadInitModel(path, "classify").status().message(),
              HasSubstr("--signature is for SavedModels"));
  const std::string silent =
      folder_.WriteText("silent.pbtxt", GraphFromText("c = float<1>{1}"));
  EXPECT_THAT(ReadInitModel(silent, "").status().message(),
              HasSubstr("has no placeholder that an output needs"));
}

TEST_F(InitFilesTest, RefusesAModelThatNoWorkflowCanName) {
  InitModel model = Model();
  model.path = folder_.Path("${m}");
  EXPECT_THAT(MakeInitFiles(model, {}, folder_.Path("new")).status().message(),
              HasSubstr("takes \"${\" for a variable; rename this"));
}

TEST_F(InitFilesTest, WritesPathsThatStayRightWhereTheyCan) {
  const std::string cwd = fs::current_path();
  EXPECT_EQ(PathFrom("new", "m"), "../m");
  EXPECT_EQ(PathFrom("new/", "m/"), "../m");
  EXPECT_EQ(PathFrom("new", "new/data/*.csv"), "data/*.csv");
  EXPECT_EQ(PathFrom("new", cwd + "/new/data.csv"), "data.csv");
  EXPECT_EQ(PathFrom("new", "/elsewhere/data.csv"), "/elsewhere/data.csv");
  EXPECT_EQ(PathFrom(".", "m"), "m");
  EXPECT_EQ(PathFrom("new", "."), "..");
  // From what a link leads to, ".." leads elsewhere.
  fs::create_directories(folder_.Path("far/away"));
  fs::create_directory_symlink("far/away", folder_.Path("link"));
  fs::current_path(folder_.path());
  EXPECT_EQ(PathFrom("link", "m"), "../../m");
  fs::current_path(cwd);
}

}  // namespace
}  // namespace requant::init_files_test
