#include "graph/saved_model/saved_model_file.h"

#include <unistd.h>

#include <filesystem>
#include <random>

#include "base/files/file.h"
#include "google/protobuf/text_format.h"
#include "graph/graph_io.h"
#include "graph/tensorflow_library.h"
#include "graph/testing/program.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"

namespace requant::saved_model_file_test {
namespace {

namespace fs = std::filesystem;

using tensorflow::MetaGraphDef;
using tensorflow::SavedModel;

constexpr char kModel[] = "graph/testdata/functions";

GraphDef OneNode(const std::string& op) {
  GraphDef graph;
  graph.add_node()->set_name("n");
  graph.mutable_node(0)->set_op(op);
  return graph;
}

// Returns a SavedModel with a one-Placeholder graph for each of these tags.
SavedModel Tagged(const std::vector<std::string>& tags) {
  SavedModel model;
  for (const std::string& tag : tags) {
    MetaGraphDef* meta = model.add_meta_graphs();
    meta->mutable_meta_info_def()->add_tags(tag);
    *meta->mutable_graph_def() = OneNode("Placeholder");
  }
  return model;
}

class ModelFile : public testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(LoadTensorFlow()); }

  void Write(const std::string& content,
             const std::string& name = "saved_model.pb") {
    home_.Write(name, content);
  }
  static SavedModelFile Read(const std::string& folder,
                             const std::set<std::string>& tags = {}) {
    auto file = SavedModelFile::Read(folder, tags);
    EXPECT_OK(file);
    return *std::move(file);
  }
  std::string Error() const {
    return std::string(SavedModelFile::Read(folder_).status().message());
  }

  // Returns the model in `file` with its graph replaced by one node of that op.
  static SavedModel WithOneNode(const std::string& op,
                                const SavedModelFile& file) {
    const GraphDef graph = OneNode(op);
    const auto content = file.WithGraph(graph, graph.SerializeAsString());
    EXPECT_OK(content);
    SavedModel model;
    EXPECT_TRUE(
        file.name() == "saved_model.pb"
            ? model.ParseFromString(*content)
            : google::protobuf::TextFormat::ParseFromString(*content, &model));
    return model;
  }

  TestFolder home_;
  const std::string folder_ = home_.path();
  const std::string whole_ = *ReadFile(std::string(kModel) + "/saved_model.pb");
};

TEST_F(ModelFile, GivesTheGraphAndItsBytes) {
  SavedModelFile file = Read(kModel);
  EXPECT_EQ(file.name(), "saved_model.pb");
  GraphDef parsed;
  ASSERT_TRUE(parsed.ParseFromString(file.graph_bytes()));
  const GraphDef graph = file.TakeGraph();
  EXPECT_GT(graph.library().function_size(), 0);
  EXPECT_TRUE(SameMessage(graph, parsed));
  EXPECT_FALSE(file.meta().has_graph_def());
  EXPECT_TRUE(file.meta().signature_def().contains("serving_default"));
}

TEST_F(ModelFile, WithItsOwnGraphIsTheSameToTheByte) {
  SavedModelFile file = Read(kModel);
  const std::string bytes = file.graph_bytes();
  ASSERT_OK_AND_ASSIGN(const auto content,
                       file.WithGraph(file.TakeGraph(), bytes));
  EXPECT_EQ(content, whole_);
}

TEST_F(ModelFile, WithAnotherGraphKeepsAllElse) {
  const SavedModel after = WithOneNode("NoOp", Read(kModel));
  SavedModel before;
  ASSERT_TRUE(before.ParseFromString(whole_));
  *before.mutable_meta_graphs(0)->mutable_graph_def() = OneNode("NoOp");
  EXPECT_TRUE(SameMessage(before, after));
}

TEST_F(ModelFile, ListsOpsThatTheGraphHasComeToUse) {
  SavedModel before = Tagged({"serve"});
  before.mutable_meta_graphs(0)
      ->mutable_meta_info_def()
      ->mutable_stripped_op_list()
      ->add_op()
      ->set_name("MatMul");
  Write(before.SerializeAsString());
  const SavedModel after = WithOneNode("Dequantize", Read(folder_));
  std::vector<std::string> names;
  for (const auto& op :
       after.meta_graphs(0).meta_info_def().stripped_op_list().op()) {
    names.push_back(op.name());
    EXPECT_EQ(op.description(), "");
  }
  EXPECT_THAT(names, ElementsAre("Dequantize", "MatMul"));
}

TEST_F(ModelFile, LeavesOtherMetaGraphsAndUnknownFieldsAlone) {
  SavedModel model = Tagged({"train", "serve"});
  model.set_saved_model_schema_version(1);
  for (MetaGraphDef& meta : *model.mutable_meta_graphs()) {
    // The field is from a future version of TensorFlow.
    meta.GetReflection()->MutableUnknownFields(&meta)->AddVarint(77, 5);
  }
  Write(model.SerializeAsString());
  const SavedModel after = WithOneNode("NoOp", Read(folder_, {"serve"}));
  *model.mutable_meta_graphs(1)->mutable_graph_def() = OneNode("NoOp");
  EXPECT_TRUE(SameMessage(after, model));
}

// A serializer may write a submessage in several parts, which are merged.
TEST_F(ModelFile, ReadsSubmessagesInParts) {
  MetaGraphDef first, second;
  first.mutable_meta_info_def()->add_tags("serve");
  *first.mutable_graph_def() = OneNode("NoOp");
  second.mutable_meta_info_def()->add_tags("gpu");
  *second.mutable_graph_def() = GraphFromText("m = NoOp");
  const std::string both =
      first.SerializeAsString() + second.SerializeAsString();
  // The field consists of a tag, a one-byte length and the payload.
  ASSERT_LT(both.size(), 128);
  Write(absl::StrCat("\x12", std::string(1, both.size()), both));
  SavedModelFile file = Read(folder_, {"gpu", "serve"});
  EXPECT_THAT(NodesOf(file.TakeGraph()), ElementsAre("n", "m"));
  EXPECT_EQ(WithOneNode("NoOp", file).meta_graphs(0).graph_def().node_size(),
            1);
}

TEST_F(ModelFile, HoldsGraphsOfAnySize) {
  Write(Tagged({"serve"}).SerializeAsString());
  const SavedModelFile file = Read(folder_);
  for (const size_t size : {0, 1, 120, 128, 20000, 3000000}) {
    const std::string op(size, 'x');
    EXPECT_EQ(WithOneNode(op, file).meta_graphs(0).graph_def().node(0).op(),
              op);
  }
}

TEST_F(ModelFile, InTextStaysInText) {
  std::string text;
  ASSERT_TRUE(
      google::protobuf::TextFormat::PrintToString(Tagged({"serve"}), &text));
  Write(text, "saved_model.pbtxt");
  const SavedModelFile file = Read(folder_);
  EXPECT_EQ(file.name(), "saved_model.pbtxt");
  EXPECT_EQ(WithOneNode("NoOp", file).meta_graphs(0).graph_def().node(0).op(),
            "NoOp");
}

TEST_F(ModelFile, RefusesDamagedFilesWithASentence) {
  Write(whole_.substr(0, whole_.size() / 2));
  EXPECT_THAT(Error(), HasSubstr("saved_model.pb is damaged"));
  std::string noise = whole_;
  for (size_t i = 0; i < noise.size(); i += 37) noise[i] ^= 0x55;
  Write(noise);
  EXPECT_THAT(Error(), HasSubstr("saved_model.pb is damaged"));
}

// Any bytes are either refused or read, and can be written back if read.
TEST_F(ModelFile, SurvivesAnyBytes) {
  std::mt19937 random(1);
  int read = 0;
  for (int round = 0; round < 300; ++round) {
    std::string damaged = whole_;
    for (int i = 0; i < 2; ++i) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    Write(damaged);
    auto file = SavedModelFile::Read(folder_);
    if (!file.ok()) continue;
    ++read;
    const std::string bytes = file->graph_bytes();
    const GraphDef graph = file->TakeGraph();
    EXPECT_OK(file->WithGraph(graph, bytes));
  }
  EXPECT_GT(read, 0);
}

TEST_F(ModelFile, RefusesMoreThanAProtocolBufferHolds) {
  Write("");
  fs::resize_file(folder_ + "/saved_model.pb", int64_t{1} << 31);
  EXPECT_THAT(Error(), AllOf(HasSubstr("2 GB"), HasSubstr("variables")));
  RemoveTree(folder_ + "/saved_model.pb");
  Write("chunks", "saved_model.cpb");
  EXPECT_THAT(Error(), HasSubstr("SavedModel in chunks"));
}

constexpr char kWithVariables[] = "graph/testdata/resource_variables";

class ModelFolder : public testing::Test {
 protected:
  // Makes a subfolder of the home folder that counts as a SavedModel.
  std::string Make(const std::string& name) {
    folder_.Write(name + "/saved_model.pb", "x");
    return folder_.Path(name);
  }
  std::string Found(const std::string& name) {
    const auto found = FindSavedModel(absl::StrCat(home_, "/", name));
    return found.ok() ? *found : std::string(found.status().message());
  }
  std::string CopyModel() { return folder_.Copy(kWithVariables, "copy"); }
  static absl::Status Check(const std::string& directory) {
    return CheckVariables(directory, ReadGraph(kWithVariables).value());
  }

  TestFolder folder_;
  const std::string home_ = folder_.path();
};

TEST_F(ModelFolder, IsFoundWhereItIsAndAsServersLayItOut) {
  const std::string plain = Make("plain"), inner = Make("inner/saved_model"),
                    version = Make("version/3"),
                    both = Make("gpt-j-6B/saved_model/1");
  EXPECT_EQ(Found("plain"), plain);
  EXPECT_EQ(Found("plain/"), plain);
  EXPECT_EQ(Found("plain/saved_model.pb"), plain);
  EXPECT_EQ(Found("inner"), inner);
  EXPECT_EQ(Found("version"), version);
  EXPECT_EQ(Found("gpt-j-6B"), both);
  EXPECT_EQ(Found("gpt-j-6B/saved_model"), both);
  EXPECT_EQ(Found("gpt-j-6B/saved_model/1"), both);
}

TEST_F(ModelFolder, OfSeveralVersionsMustBeNamed) {
  const std::string first = Make("model/1"), second = Make("model/2");
  EXPECT_THAT(Found("model"), AllOf(HasSubstr("several SavedModels"),
                                    HasSubstr(first), HasSubstr(second)));
}

TEST_F(ModelFolder, ThatIsNoneIsASentence) {
  EXPECT_THAT(Found("missing"), HasSubstr("No such file"));
  fs::create_directories(home_ + "/empty");
  EXPECT_THAT(Found("empty"), HasSubstr("is an empty folder"));
  fs::create_directories(home_ + "/other/src");
  EXPECT_THAT(Found("other"), HasSubstr("is not a SavedModel"));
  folder_.Write("graph.pb", "x");
  EXPECT_THAT(Found("graph.pb"), HasSubstr("name the folder"));
  ASSERT_EQ(symlink("circle", (home_ + "/circle").c_str()), 0);
  EXPECT_THAT(Found("circle"), HasSubstr("symbolic links"));
}

TEST(SavedModelNames, LeaveOutVersionsAndInnerFolders) {
  EXPECT_EQ(SavedModelName("models/gpt-j-6B/saved_model/1"), "gpt-j-6B");
  EXPECT_EQ(SavedModelName("gpt-j-6B/saved_model"), "gpt-j-6B");
  EXPECT_EQ(SavedModelName("./gpt-j-6B/1/"), "gpt-j-6B");
  EXPECT_EQ(SavedModelName("../gpt-j-6B"), "gpt-j-6B");
  EXPECT_EQ(SavedModelName("/1"), "1");
  EXPECT_EQ(SavedModelName("."), fs::current_path().filename().string());
}

TEST_F(ModelFolder, HasTheValuesOfItsVariables) {
  EXPECT_OK(Check(CopyModel()));
  EXPECT_OK(CheckVariables(home_, GraphDef()));
}

TEST_F(ModelFolder, WithoutItsIndexOrAShardIsRefused) {
  const std::string variables = CopyModel() + "/variables";
  fs::remove(variables + "/variables.data-00000-of-00001");
  EXPECT_THAT(Check(home_ + "/copy"), FailsWith(HasSubstr("is missing")));
  fs::remove_all(variables);
  EXPECT_THAT(Check(home_ + "/copy"),
              FailsWith(HasSubstr("variables.index is missing")));
}

// This happens after an aborted download or a download of a pointer file.
TEST_F(ModelFolder, WithAShortShardOrIndexIsRefused) {
  const std::string variables = CopyModel() + "/variables/variables";
  fs::resize_file(variables + ".data-00000-of-00001", 1);
  EXPECT_THAT(Check(home_ + "/copy"),
              FailsWith(HasSubstr("is cut short: it has 1 of")));
  fs::resize_file(variables + ".index", 20);
  EXPECT_THAT(Check(home_ + "/copy"),
              FailsWith(HasSubstr("variables.index is damaged")));
}

MetaGraphDef Functions() {
  auto meta = ReadSavedModel(kModel);
  EXPECT_OK(meta);
  return *std::move(meta);
}

// Returns the error for a model whose graph becomes `changed`.
std::string Problem(const MetaGraphDef& meta, const GraphDef& changed) {
  return std::string(
      SavedModelReferences(meta, meta.graph_def()).Check(changed).message());
}

TEST(References, ComeFromSignaturesAndTheSaver) {
  const MetaGraphDef meta = Functions();
  EXPECT_EQ(Problem(meta, meta.graph_def()), "");
  const SavedModelReferences references(meta, meta.graph_def());
  EXPECT_THAT(references.outputs(), Contains("StatefulPartitionedCall"));
  EXPECT_THAT(references.outputs(), Contains("saver_filename"));
  EXPECT_THAT(references.inputs(), Contains(HasSubstr("serving_default_")));
}

TEST(References, ToALostNodeAreNamed) {
  const MetaGraphDef meta = Functions();
  const std::string input =
      SavedModelReferences(meta, meta.graph_def()).inputs().front();
  for (const auto& [name, owner] :
       std::vector<std::pair<std::string, std::string>>{
           {"saver_filename", "the saver"}, {input, "the signature \""}}) {
    GraphDef graph = meta.graph_def();
    MutableNode(&graph, name)->set_name("another");
    EXPECT_THAT(Problem(meta, graph), AllOf(HasSubstr(name), HasSubstr(owner)));
  }
}

// Only a Python program calls these, so the graph itself is complete.
TEST(References, OfObjectsToALostOrChangedFunctionAreNamed) {
  const MetaGraphDef meta = Functions();
  ASSERT_FALSE(meta.object_graph_def().concrete_functions().empty());
  const std::string name =
      meta.object_graph_def().concrete_functions().begin()->first;
  GraphDef lost = meta.graph_def(), changed = lost;
  for (int i = 0; i < lost.library().function_size(); ++i) {
    if (lost.library().function(i).signature().name() != name) continue;
    auto* function = changed.mutable_library()->mutable_function(i);
    function->mutable_signature()->add_input_arg()->set_name("more");
    lost.mutable_library()->mutable_function(i)->clear_signature();
  }
  EXPECT_THAT(Problem(meta, lost), HasSubstr("removed the function"));
  EXPECT_THAT(Problem(meta, changed), HasSubstr("changed the arguments"));
}

// A model that was stripped before must not be rejected.
TEST(References, ToWhatWasNeverThereDoNotCount) {
  MetaGraphDef meta = Functions();
  meta.mutable_saver_def()->set_restore_op_name("gone");
  EXPECT_EQ(Problem(meta, meta.graph_def()), "");
}

TEST(Signatures, AreSuggestedAndListedButTensorFlowsOwnAreNot) {
  const MetaGraphDef meta = Functions();
  EXPECT_OK(CheckSignature(meta, "serving_default", "model"));
  EXPECT_THAT(
      CheckSignature(meta, "serving_defualt", "model"),
      FailsWith(AllOf(HasSubstr("model has no signature \"serving_defualt\""),
                      HasSubstr("did you mean \"serving_default\"?"))));
  EXPECT_TRUE(meta.signature_def().contains("__saved_model_init_op"));
  EXPECT_THAT(SignatureNames(meta), ElementsAre("serving_default"));
}

}  // namespace
}  // namespace requant::saved_model_file_test
