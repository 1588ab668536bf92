#include "graph/graph_io.h"

#include <sys/stat.h>

#include <filesystem>

#include "graph/testing/program.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"

namespace requant::graph_io_test {
namespace {

constexpr char kGraph[] =
    "x = Placeholder shape=<?> dtype=float _b=2 _a=1\n function f() -> () {}";

class GraphFile : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.Path(name); }
  absl::StatusOr<GraphDef> Read(const std::string& content) {
    return ReadGraph(folder_.Write("bad", content));
  }

  TestFolder folder_;
};

TEST_F(GraphFile, TellsFormatsApartByContentNotByName) {
  const GraphDef graph = GraphFromText(kGraph);
  ASSERT_OK(WriteGraph(graph, Path("text.pb"), GraphFormat::kText));
  ASSERT_OK(WriteGraph(graph, Path("bin.pbtxt"), GraphFormat::kBinary));
  for (const char* name : {"text.pb", "bin.pbtxt"}) {
    ASSERT_OK_AND_ASSIGN(auto read, ReadGraph(Path(name)));
    EXPECT_EQ(read.DebugString(), graph.DebugString());
    EXPECT_EQ(read.library().function(0).signature().name(), "f");
  }
}

TEST_F(GraphFile, TextMayStartWithCommentsAndBlanks) {
  EXPECT_EQ(Read("\n# gr\xf6\xdf er\n\n  node { name: 'n' }")->node(0).name(),
            "n");
}

TEST_F(GraphFile, PointsAtTheLineOfATextError) {
  EXPECT_THAT(Read("node {\n  name: \"a\"\n  opp: \"b\"\n}"),
              FailsWith(HasSubstr("bad:3:")));
}

TEST_F(GraphFile, RefusesWhatIsNoGraph) {
  EXPECT_THAT(Read(""), FailsWith(HasSubstr("is empty")));
  for (const char* text : {"\177ELF and more", "hello world, this is prose",
                           "# prose\nafter a comment"}) {
    EXPECT_THAT(Read(text), FailsWith(HasSubstr("not a TensorFlow graph")));
  }
  EXPECT_THAT(ReadGraph(Path("absent")), FailsWith(HasSubstr("absent")));
}

TEST_F(GraphFile, RefusesATruncatedBinary) {
  const std::string bytes = SerializeGraph(GraphFromText(kGraph)).value();
  EXPECT_THAT(Read(bytes.substr(0, bytes.size() - 5)),
              FailsWith(HasSubstr("not a TensorFlow graph")));
}

TEST_F(GraphFile, RefusesDeeplyNestedText) {
  std::string text = "node { name: 'n' attr { key: 'k' value { ";
  for (int i = 0; i < 100000; ++i) text += "func { attr { value { ";
  EXPECT_THAT(Read(text), FailsWith(HasSubstr("bad:")));
}

TEST_F(GraphFile, ReadsTheGraphOfAMetaGraphFile) {
  tensorflow::MetaGraphDef meta;
  *meta.mutable_graph_def() = GraphFromText(kGraph);
  meta.mutable_meta_info_def()->add_tags("train");
  EXPECT_EQ(Read(meta.SerializeAsString())->node(0).name(), "x");
}

class SavedModelDirectory : public GraphFile {
 protected:
  void Write(const std::vector<std::string>& tags) {
    tensorflow::SavedModel model;
    model.set_saved_model_schema_version(1);
    for (const std::string& tag : tags) {
      auto* meta = model.add_meta_graphs();
      meta->mutable_meta_info_def()->add_tags(tag);
      meta->mutable_graph_def()->add_node()->set_name("of_" + tag);
    }
    folder_.Write("saved/saved_model.pb", model.SerializeAsString());
  }

  const std::string directory_ = Path("saved");
};

TEST_F(SavedModelDirectory, TheServingGraphIsTheDefault) {
  Write({"train", "serve"});
  EXPECT_TRUE(IsSavedModelDirectory(directory_));
  EXPECT_EQ(ReadGraph(directory_)->node(0).name(), "of_serve");
  EXPECT_EQ(ReadGraph(directory_ + "/saved_model.pb")->node(0).name(),
            "of_serve");
  EXPECT_EQ(ReadGraph(directory_, {"train"})->node(0).name(), "of_train");
}

TEST_F(SavedModelDirectory, TheOnlyGraphNeedsNoTag) {
  Write({"odd"});
  EXPECT_EQ(ReadGraph(directory_)->node(0).name(), "of_odd");
}

TEST_F(SavedModelDirectory, AMissingTagListsWhatThereIs) {
  Write({"train", "serve"});
  EXPECT_THAT(
      ReadGraph(directory_, {"gpu"}),
      FailsWith(HasSubstr("no graph tagged {gpu}; it has {train}, {serve}")));
}

TEST_F(SavedModelDirectory, SaysThatItsFileIsEmpty) {
  folder_.Write("saved/saved_model.pb", "");
  EXPECT_THAT(ReadGraph(directory_),
              FailsWith(HasSubstr("saved_model.pb is empty")));
}

TEST_F(SavedModelDirectory, DoesNotWaitForAPipe) {
  std::filesystem::create_directory(directory_);
  ASSERT_EQ(mkfifo(Path("saved/saved_model.pb").c_str(), 0666), 0);
  EXPECT_THAT(ReadGraph(directory_), FailsWith(HasSubstr("no regular file")));
}

TEST_F(SavedModelDirectory, ADirectoryThatIsNoneSaysSo) {
  EXPECT_THAT(ReadGraph(folder_.path()),
              FailsWith(HasSubstr("without saved_model.pb")));
}

TEST_F(GraphFile, GivesTheSameBytesForAnyOrderOfAttributes) {
  GraphDef forward = GraphFromText(kGraph);
  GraphDef backward = forward;
  backward.mutable_node(0)->clear_attr();
  for (const char* key : {"_a", "_b", "dtype", "shape"}) {
    (*backward.mutable_node(0)->mutable_attr())[key] =
        forward.node(0).attr().at(key);
  }
  EXPECT_EQ(SerializeGraph(forward).value(), SerializeGraph(backward).value());
  ASSERT_OK(WriteGraph(forward, Path("f"), GraphFormat::kBinary));
  EXPECT_EQ(folder_.Read("f"), SerializeGraph(forward).value());
}

TEST_F(GraphFile, NamesTheFileItCannotWrite) {
  EXPECT_THAT(
      WriteGraph(GraphDef(), Path("no/such/dir.pb"), GraphFormat::kBinary),
      FailsWith(HasSubstr("no/such/dir.pb")));
}

TEST_F(GraphFile, ReadsGzippedTextAndBinary) {
  const GraphDef graph = GraphFromText(kGraph);
  for (const GraphFormat format : {GraphFormat::kText, GraphFormat::kBinary}) {
    ASSERT_OK(WriteGraph(graph, Path("graph"), format));
    ASSERT_OK_AND_ASSIGN(const auto read, Read(Gzip(folder_.Read("graph"))));
    EXPECT_TRUE(SameMessage(read, graph));
  }
}

TEST(CheckModelFormat, SaysHowToGetASavedModel) {
  for (const auto& [file, advice] :
       std::vector<std::pair<std::string, std::string>>{
           {"m.keras", "m.keras is a model of Keras"},
           {"m.H5", ".export(FOLDER)"},
           {"m.onnx", "an ONNX model"},
           {"m.tflite", "cannot be turned back"}}) {
    EXPECT_THAT(ReadGraph(file).status().message(), HasSubstr(advice));
  }
  EXPECT_OK(CheckModelFormat("m.pb"));
}

}  // namespace
}  // namespace requant::graph_io_test
