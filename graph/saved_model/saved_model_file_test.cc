#include "graph/saved_model/saved_model_file.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>

#include "base/files/file.h"
#include "google/protobuf/text_format.h"
#include "graph/graph_io.h"
#include "graph/tensorflow_library.h"
#include "graph/testing/testing.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"

namespace requant::saved_model_file_test {
namespace {

using tensorflow::MetaGraphDef;
using tensorflow::SavedModel;

constexpr char kModel[] = "graph/testdata/functions";

GraphDef OneNode(const std::string& op) { return GraphFromText("n = " + op); }

class ModelFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/file.XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { RemoveTree(folder_); }

  void Write(const std::string& content,
             const std::string& name = "saved_model.pb") {
    ASSERT_OK(WriteFileAtomically(folder_ + "/" + name, content));
  }
  static SavedModelFile Read(const std::string& folder,
                             const std::set<std::string>& tags = {}) {
    auto file = SavedModelFile::Read(folder, tags);
    EXPECT_OK(file);
    return *std::move(file);
  }
  std::string Error(const std::set<std::string>& tags = {}) const {
    return std::string(SavedModelFile::Read(folder_, tags).status().message());
  }

  std::string folder_;
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
  ASSERT_OK(LoadTensorFlow());
  SavedModelFile file = Read(kModel);
  const std::string bytes = file.graph_bytes();
  ASSERT_OK_AND_ASSIGN(const auto content,
                       file.WithGraph(file.TakeGraph(), bytes));
  EXPECT_EQ(content, *ReadFile(std::string(kModel) + "/saved_model.pb"));
}

TEST_F(ModelFile, WithAnotherGraphKeepsAllElse) {
  ASSERT_OK(LoadTensorFlow());
  SavedModelFile file = Read(kModel);
  const GraphDef graph = OneNode("NoOp");
  ASSERT_OK_AND_ASSIGN(const auto content,
                       file.WithGraph(graph, graph.SerializeAsString()));
  SavedModel before, after;
  ASSERT_TRUE(before.ParseFromString(
      *ReadFile(std::string(kModel) + "/saved_model.pb")));
  ASSERT_TRUE(after.ParseFromString(content));
  EXPECT_TRUE(SameMessage(after.meta_graphs(0).graph_def(), graph));
  *before.mutable_meta_graphs(0)->mutable_graph_def() = graph;
  EXPECT_TRUE(SameMessage(before, after));
}

TEST_F(ModelFile, ListsOpsThatTheGraphHasComeToUse) {
  ASSERT_OK(LoadTensorFlow());
  SavedModel before;
  auto* info = before.add_meta_graphs()->mutable_meta_info_def();
  info->add_tags("serve");
  info->mutable_stripped_op_list()->add_op()->set_name("MatMul");
  Write(before.SerializeAsString());
  SavedModelFile file = Read(folder_);
  const GraphDef graph = OneNode("Dequantize");
  ASSERT_OK_AND_ASSIGN(const auto content,
                       file.WithGraph(graph, graph.SerializeAsString()));
  SavedModel model;
  ASSERT_TRUE(model.ParseFromString(content));
  std::set<std::string> names;
  for (const auto& op :
       model.meta_graphs(0).meta_info_def().stripped_op_list().op()) {
    names.insert(op.name());
    EXPECT_EQ(op.description(), "");
  }
  EXPECT_EQ(names.count("Dequantize"), 1);
  EXPECT_EQ(names.count("MatMul"), 1);
}

TEST_F(ModelFile, LeavesOtherMetaGraphsAndUnknownFieldsAlone) {
  ASSERT_OK(LoadTensorFlow());
  SavedModel model;
  model.set_saved_model_schema_version(1);
  for (const char* tag : {"train", "serve"}) {
    MetaGraphDef* meta = model.add_meta_graphs();
    meta->mutable_meta_info_def()->add_tags(tag);
    *meta->mutable_graph_def() = OneNode("Placeholder");
    // A field of a TensorFlow that is yet to come.
    meta->GetReflection()->MutableUnknownFields(meta)->AddVarint(77, 5);
  }
  Write(model.SerializeAsString());
  const GraphDef graph = OneNode("NoOp");
  ASSERT_OK_AND_ASSIGN(
      const auto content,
      Read(folder_, {"serve"}).WithGraph(graph, graph.SerializeAsString()));
  *model.mutable_meta_graphs(1)->mutable_graph_def() = graph;
  SavedModel after;
  ASSERT_TRUE(after.ParseFromString(content));
  EXPECT_TRUE(SameMessage(after, model));
}

TEST_F(ModelFile, InTextStaysInText) {
  ASSERT_OK(LoadTensorFlow());
  SavedModel model;
  MetaGraphDef* meta = model.add_meta_graphs();
  meta->mutable_meta_info_def()->add_tags("serve");
  *meta->mutable_graph_def() = OneNode("Placeholder");
  std::string text;
  ASSERT_TRUE(google::protobuf::TextFormat::PrintToString(model, &text));
  Write(text, "saved_model.pbtxt");
  const SavedModelFile file = Read(folder_);
  EXPECT_EQ(file.name(), "saved_model.pbtxt");
  const GraphDef graph = OneNode("NoOp");
  ASSERT_OK_AND_ASSIGN(const auto content,
                       file.WithGraph(graph, graph.SerializeAsString()));
  SavedModel after;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(content, &after));
  EXPECT_EQ(after.meta_graphs(0).graph_def().node(0).op(), "NoOp");
}

TEST_F(ModelFile, NamesTheTagsThereAre) {
  SavedModel model;
  model.add_meta_graphs()->mutable_meta_info_def()->add_tags("train");
  model.add_meta_graphs()->mutable_meta_info_def()->add_tags("tpu");
  Write(model.SerializeAsString());
  EXPECT_THAT(Error(),
              AllOf(HasSubstr("{serve}"), HasSubstr("{train}, {tpu}")));
}

TEST_F(ModelFile, RefusesDamagedFilesWithASentence) {
  ASSERT_OK_AND_ASSIGN(const auto whole,
                       ReadFile(std::string(kModel) + "/saved_model.pb"));
  Write(whole.substr(0, whole.size() / 2));
  EXPECT_THAT(Error(), HasSubstr("saved_model.pb is damaged"));
  Write("");
  EXPECT_THAT(Error(), HasSubstr("saved_model.pb is empty"));
  std::string noise = whole;
  for (size_t i = 0; i < noise.size(); i += 37) noise[i] ^= 0x55;
  Write(noise);
  EXPECT_THAT(Error(), HasSubstr("saved_model.pb is damaged"));
}

// Whatever its bytes are, a file is refused or read, and written back if read.
TEST_F(ModelFile, SurvivesAnyBytes) {
  ASSERT_OK(LoadTensorFlow());
  ASSERT_OK_AND_ASSIGN(const auto whole,
                       ReadFile(std::string(kModel) + "/saved_model.pb"));
  std::mt19937 random(1);
  int read = 0;
  for (int round = 0; round < 300; ++round) {
    std::string damaged = whole;
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
  ASSERT_EQ(truncate((folder_ + "/saved_model.pb").c_str(), int64_t{1} << 31),
            0);
  EXPECT_THAT(Error(), AllOf(HasSubstr("2 GB"), HasSubstr("variables")));
  RemoveTree(folder_ + "/saved_model.pb");
  Write("chunks", "saved_model.cpb");
  EXPECT_THAT(Error(), HasSubstr("SavedModel in chunks"));
}

}  // namespace
}  // namespace requant::saved_model_file_test
