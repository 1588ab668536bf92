#include "graph/saved_model/saved_model_file.h"

#include <filesystem>
#include <random>
#include <set>

#include "base/files/file.h"
#include "google/protobuf/text_format.h"
#include "graph/graph_io.h"
#include "graph/tensorflow_library.h"
#include "graph/testing/program.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"

namespace requant::saved_model_file_test {
namespace {

using tensorflow::MetaGraphDef;
using tensorflow::SavedModel;

std::string SomeGraph() {
  return GraphFromText("a = A; b = B\n versions { producer: 27 }")
      .SerializeAsString();
}

std::string Joined(const std::vector<MessageField>& fields) {
  std::string joined;
  for (const MessageField& field : fields) joined.append(field.bytes);
  return joined;
}

TEST(MessageFields, TogetherAreTheMessageAndHavePayloads) {
  const std::string message = SomeGraph();
  std::vector<MessageField> fields;
  ASSERT_TRUE(SplitFields(message, &fields));
  EXPECT_EQ(Joined(fields), message);
  ASSERT_EQ(fields.size(), 3);
  NodeDef node;
  ASSERT_TRUE(node.ParseFromString(std::string(fields[0].payload)));
  EXPECT_EQ(fields[0].number, GraphDef::kNodeFieldNumber);
  EXPECT_EQ(node.name(), "a");
}

TEST(MessageFields, OfOneSubmessageInPartsAreJoined) {
  std::string message;
  tensorflow::VersionDef part;
  part.set_producer(5);
  AppendField(GraphDef::kVersionsFieldNumber, part.SerializeAsString(),
              &message);
  part.Clear();
  part.set_min_consumer(2);
  AppendField(GraphDef::kVersionsFieldNumber, part.SerializeAsString(),
              &message);
  std::vector<MessageField> fields;
  ASSERT_TRUE(SplitFields(message, &fields));
  tensorflow::VersionDef versions;
  ASSERT_TRUE(versions.ParseFromString(
      JoinedPayload(fields, GraphDef::kVersionsFieldNumber)));
  EXPECT_EQ(versions.producer(), 5);
  EXPECT_EQ(versions.min_consumer(), 2);
}

TEST(MessageFields, AppendedAreReadBackAtAnySize) {
  for (const size_t size : {0, 1, 127, 128, 20000, 3000000}) {
    std::string message;
    AppendField(2000, std::string(size, 'x'), &message);
    std::vector<MessageField> fields;
    ASSERT_TRUE(SplitFields(message, &fields));
    ASSERT_EQ(fields.size(), 1);
    EXPECT_EQ(fields[0].number, 2000);
    EXPECT_EQ(fields[0].payload.size(), size);
  }
}

// Whatever is cut off or changed, nothing outside of the message is read, and
// what is split fits together again.
TEST(MessageFields, OfDamagedMessagesAreRefusedOrWhole) {
  const std::string message = SomeGraph();
  for (size_t at = 0; at < message.size(); ++at) {
    for (const char byte : {'\x00', '\x07', '\x7f', '\xff'}) {
      std::string damaged = message;
      damaged[at] = byte;
      std::vector<MessageField> fields;
      if (SplitFields(damaged, &fields)) {
        EXPECT_EQ(Joined(fields), damaged);
      }
    }
  }
  std::vector<MessageField> fields;
  EXPECT_FALSE(SplitFields(message.substr(0, message.size() - 1), &fields));
  EXPECT_FALSE(SplitFields(std::string("\x0a\xff\xff\xff\x7f", 5), &fields));
}

constexpr char kModel[] = "graph/testdata/functions";

GraphDef OneNode(const std::string& op) { return GraphFromText("n = " + op); }

// Returns a SavedModel with a graph of one Placeholder for each of these tags.
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
  std::string Error(const std::set<std::string>& tags = {}) const {
    return std::string(SavedModelFile::Read(folder_, tags).status().message());
  }

  // Returns the model in `file` once its graph is one node of that op.
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
    // A field of a TensorFlow that is yet to come.
    meta.GetReflection()->MutableUnknownFields(&meta)->AddVarint(77, 5);
  }
  Write(model.SerializeAsString());
  const SavedModel after = WithOneNode("NoOp", Read(folder_, {"serve"}));
  *model.mutable_meta_graphs(1)->mutable_graph_def() = OneNode("NoOp");
  EXPECT_TRUE(SameMessage(after, model));
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

TEST_F(ModelFile, NamesTheTagsThereAre) {
  Write(Tagged({"train", "tpu"}).SerializeAsString());
  EXPECT_THAT(Error(),
              AllOf(HasSubstr("{serve}"), HasSubstr("{train}, {tpu}")));
}

TEST_F(ModelFile, RefusesDamagedFilesWithASentence) {
  Write(whole_.substr(0, whole_.size() / 2));
  EXPECT_THAT(Error(), HasSubstr("saved_model.pb is damaged"));
  Write("");
  EXPECT_THAT(Error(), HasSubstr("saved_model.pb is empty"));
  std::string noise = whole_;
  for (size_t i = 0; i < noise.size(); i += 37) noise[i] ^= 0x55;
  Write(noise);
  EXPECT_THAT(Error(), HasSubstr("saved_model.pb is damaged"));
}

// Whatever its bytes are, a file is refused or read, and written back if read.
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
  std::filesystem::resize_file(folder_ + "/saved_model.pb", int64_t{1} << 31);
  EXPECT_THAT(Error(), AllOf(HasSubstr("2 GB"), HasSubstr("variables")));
  RemoveTree(folder_ + "/saved_model.pb");
  Write("chunks", "saved_model.cpb");
  EXPECT_THAT(Error(), HasSubstr("SavedModel in chunks"));
}

}  // namespace
}  // namespace requant::saved_model_file_test
