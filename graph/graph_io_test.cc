#include "graph/graph_io.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "graph/testing/testing.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"

namespace requant::graph_io_test {
namespace {

constexpr char kGraph[] =
    "x = Placeholder shape=<?> dtype=float _b=2 _a=1\n function f() -> () {}";

std::string Path(const std::string& name) { return testing::TempDir() + name; }

std::string ReadError(const std::string& content) {
  EXPECT_OK(WriteFileAtomically(Path("bad"), content));
  return std::string(ReadGraph(Path("bad")).status().message());
}

TEST(ReadGraph, TellsFormatsApartByContentNotByName) {
  const GraphDef graph = GraphFromText(kGraph);
  ASSERT_OK(WriteGraph(graph, Path("text.pb"), GraphFormat::kText));
  ASSERT_OK(WriteGraph(graph, Path("bin.pbtxt"), GraphFormat::kBinary));
  for (const char* name : {"text.pb", "bin.pbtxt"}) {
    ASSERT_OK_AND_ASSIGN(auto read, ReadGraph(Path(name)));
    EXPECT_EQ(read.DebugString(), graph.DebugString());
    EXPECT_EQ(read.library().function(0).signature().name(), "f");
  }
}

TEST(ReadGraph, TextMayStartWithCommentsAndBlanks) {
  ASSERT_OK(
      WriteFileAtomically(Path("c"), "\n# a comment\n\n  node { name: 'n' }"));
  EXPECT_EQ(ReadGraph(Path("c"))->node(0).name(), "n");
}

TEST(ReadGraph, PointsAtTheLineOfATextError) {
  EXPECT_THAT(ReadError("node {\n  name: \"a\"\n  opp: \"b\"\n}"),
              HasSubstr("bad:3:"));
}

TEST(ReadGraph, RefusesWhatIsNoGraph) {
  EXPECT_THAT(ReadError(""), HasSubstr("is empty"));
  EXPECT_THAT(ReadError("\x7f"
                        "ELF and more"),
              HasSubstr("not a TensorFlow graph"));
  EXPECT_THAT(ReadError("hello world, this is prose"),
              HasSubstr("not a TensorFlow graph"));
  EXPECT_THAT(ReadGraph(Path("absent")), FailsWith(HasSubstr("absent")));
}

TEST(ReadGraph, RefusesATruncatedBinary) {
  const std::string bytes = SerializeGraph(GraphFromText(kGraph)).value();
  EXPECT_THAT(ReadError(bytes.substr(0, bytes.size() - 5)),
              HasSubstr("not a TensorFlow graph"));
}

TEST(ReadGraph, RefusesDeeplyNestedText) {
  std::string text = "node { name: 'n' attr { key: 'k' value { ";
  for (int i = 0; i < 100000; ++i) text += "func { attr { value { ";
  EXPECT_THAT(ReadError(text), HasSubstr("bad:"));
}

TEST(ReadGraph, ReadsTheGraphOfAMetaGraphFile) {
  tensorflow::MetaGraphDef meta;
  *meta.mutable_graph_def() = GraphFromText(kGraph);
  meta.mutable_meta_info_def()->add_tags("train");
  ASSERT_OK(WriteFileAtomically(Path("m.meta"), meta.SerializeAsString()));
  ASSERT_OK_AND_ASSIGN(auto read, ReadGraph(Path("m.meta")));
  EXPECT_EQ(read.node(0).name(), "x");
}

class SavedModelDirectory : public testing::Test {
 protected:
  void Write(const std::vector<std::string>& tags) {
    tensorflow::SavedModel model;
    model.set_saved_model_schema_version(1);
    for (const std::string& tag : tags) {
      auto* meta = model.add_meta_graphs();
      meta->mutable_meta_info_def()->add_tags(tag);
      meta->mutable_graph_def()->add_node()->set_name("of_" + tag);
    }
    mkdir(directory_.c_str(), 0777);
    ASSERT_OK(WriteFileAtomically(directory_ + "/saved_model.pb",
                                  model.SerializeAsString()));
  }
  std::string directory_ = Path("saved");
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
  Write({});
  ASSERT_OK(WriteFileAtomically(directory_ + "/saved_model.pb", ""));
  EXPECT_THAT(ReadGraph(directory_),
              FailsWith(HasSubstr("saved_model.pb is empty")));
}

TEST_F(SavedModelDirectory, DoesNotWaitForAPipe) {
  Write({});
  const std::string path = directory_ + "/saved_model.pb";
  unlink(path.c_str());
  ASSERT_EQ(mkfifo(path.c_str(), 0666), 0);
  EXPECT_THAT(ReadGraph(directory_), FailsWith(HasSubstr("no regular file")));
  unlink(path.c_str());
}

TEST_F(SavedModelDirectory, ADirectoryThatIsNoneSaysSo) {
  EXPECT_THAT(ReadGraph(testing::TempDir()),
              FailsWith(HasSubstr("without saved_model.pb")));
}

TEST(WriteGraph, GivesTheSameBytesForAnyOrderOfAttributes) {
  GraphDef forward = GraphFromText(kGraph);
  GraphDef backward = forward;
  backward.mutable_node(0)->clear_attr();
  for (const char* key : {"_a", "_b", "dtype", "shape"}) {
    (*backward.mutable_node(0)->mutable_attr())[key] =
        forward.node(0).attr().at(key);
  }
  EXPECT_EQ(SerializeGraph(forward).value(), SerializeGraph(backward).value());
  ASSERT_OK(WriteGraph(forward, Path("f"), GraphFormat::kBinary));
  EXPECT_EQ(ReadFile(Path("f")).value(), SerializeGraph(forward).value());
}

TEST(WriteGraph, NamesTheFileItCannotWrite) {
  EXPECT_THAT(
      WriteGraph(GraphDef(), Path("no/such/dir.pb"), GraphFormat::kBinary),
      FailsWith(HasSubstr("no/such/dir.pb")));
}

TEST(ReadGraph, ReadsGzippedTextAndBinary) {
  const GraphDef graph = GraphFromText(kGraph);
  const std::string path = Path("graph.gz");
  for (const GraphFormat format : {GraphFormat::kText, GraphFormat::kBinary}) {
    ASSERT_OK(WriteGraph(graph, path, format));
    ASSERT_OK(WriteFileAtomically(path, Gzip(*ReadFile(path))));
    ASSERT_OK_AND_ASSIGN(const auto read, ReadGraph(path));
    EXPECT_TRUE(SameMessage(read, graph));
  }
}

}  // namespace
}  // namespace requant::graph_io_test
