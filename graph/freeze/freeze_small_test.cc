// Tests small hand-made models, one rule each.

#include <cstdio>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/testing/golden_cases.h"
#include "graph/freeze/freeze.h"
#include "graph/graph_io.h"
#include "graph/testing/program.h"
#include "tensorflow/core/framework/tensor_slice.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/util/tensor_bundle/tensor_bundle.h"
#include "tensorflow/core/util/tensor_slice_writer.h"

namespace requant::freeze_small_test {
namespace {

using tensorflow::DataType;
using tensorflow::TensorShape;
using tensorflow::TensorSlice;

// A model with an output "y" and a checkpoint.
class SmallModel {
 public:
  SmallModel() {
    options_.outputs = {"y"};
    options_.files.graph = prefix_ + ".pb";
    options_.files.checkpoint = prefix_;
  }

  void Save(const std::string& key, const Tensor& value) {
    EXPECT_OK(writer_.Add(key, value));
    saved_ = true;
  }

  // Applies a case's line "WHAT: value". Returns false for any other line.
  bool Obey(const std::string& line) {
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(": ", 1));
    const std::vector<std::string> words =
        absl::StrSplit(parts.back(), absl::MaxSplits(' ', 2));
    if (parts[0] == "save") {
      const GraphDef constant = GraphFromText(parts[1]);
      Save(constant.node(0).name(), ConstNamed(constant, words[0]));
    } else if (parts[0] == "slice") {
      // The words are the whole vector's size, the slice, and its values.
      const GraphDef constant = GraphFromText(words[2]);
      const std::string key = constant.node(0).name();
      EXPECT_OK(writer_.AddSlice(key, TensorShape({std::stoll(words[0])}),
                                 TensorSlice::ParseOrDie(words[1]),
                                 ConstNamed(constant, key)));
      saved_ = true;
    } else if (parts[0] == "outputs") {
      options_.outputs.clear();
      if (parts[1] != "none") options_.outputs = {parts[1]};
    } else if (parts[0] == "keep") {
      options_.kept_variables = {parts[1]};
    } else if (parts[0] == "only") {
      options_.only_variables = {parts[1]};
    } else if (parts[0] == "devices") {
      options_.clear_devices = parts[1] == "cleared";
    } else {
      return false;
    }
    return true;
  }

  // Freezes a graph. The checkpoint has "v" = [1, 2] unless something else was
  // saved before.
  absl::StatusOr<FrozenGraph> FreezeText(const std::string& text) {
    if (!saved_) Save("v", TensorOf<float>({2}, {1, 2}));
    EXPECT_OK(writer_.Finish());
    EXPECT_OK(WriteGraph(GraphFromText(text), options_.files.graph,
                         GraphFormat::kBinary));
    return Freeze(options_);
  }

  TestFolder folder_;
  const std::string prefix_ = folder_.Path("model");
  tensorflow::BundleWriter writer_{tensorflow::Env::Default(), prefix_};
  bool saved_ = false;
  FreezeOptions options_;
};

// Returns an error, or else the frozen graph, the value of "y" if requested,
// and the notes.
std::string FreezeCase(const std::string& input) {
  SmallModel model;
  std::string graph;
  bool runs = false;
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(input, '\n'))) {
    if (line == "run") {
      runs = true;
    } else if (!model.Obey(line)) {
      absl::StrAppend(&graph, line, "\n");
    }
  }
  const auto frozen = model.FreezeText(graph);
  if (!frozen.ok()) {
    return absl::StrReplaceAll(frozen.status().message(),
                               {{model.prefix_, "T/model"}});
  }
  std::string text = absl::StrCat(LinesOf(frozen->graph), frozen->variables,
                                  " variables, ", frozen->variable_bytes,
                                  " bytes, ", frozen->inlined_calls, " calls");
  if (runs) {
    const Tensor y = MustRunGraph(frozen->graph, {}, {"y"})[0];
    absl::StrAppend(&text, "\ny is ", y.DebugString(y.NumElements()));
  }
  for (const std::string& note : frozen->notes) {
    absl::StrAppend(&text, "\nnote: ", note);
  }
  return text;
}

TEST(FreezeSmall, FollowsTheRules) {
  CheckGoldenCases("graph/freeze/freeze_cases.txt", FreezeCase);
}

// The graph and the checkpoint are those of a Saver before TensorFlow 1.0.
TEST(FreezeSmall, RestoresTheFirstFormatAsTheGraphSays) {
  SmallModel model;
  model.options_.files.checkpoint = model.prefix_ + ".ckpt";
  tensorflow::checkpoint::TensorSliceWriter writer(
      model.options_.files.checkpoint,
      tensorflow::checkpoint::CreateTableTensorSliceBuilder);
  const float values[] = {1, 2, 3, 4, 5};
  ASSERT_OK(writer.Add("whole", TensorShape({2}), TensorSlice(1), values));
  for (const char* slice : {"0,3", "3,2"}) {
    const TensorSlice part = TensorSlice::ParseOrDie(slice);
    ASSERT_OK(
        writer.Add("parts", TensorShape({5}), part, values + part.start(0)));
  }
  ASSERT_OK(writer.Finish());
  ASSERT_OK_AND_ASSIGN(const auto frozen, model.FreezeText(R"(
    a = Variable dtype=float shape=<2>
    b = Variable dtype=float shape=<2>
    y = Add(a, b) T=float
    file = string<1>{''}
    a_name = string<1>{'whole'}
    b_name = string<1>{'parts'}
    b_slice = string<1>{'5 2,2'}
    a_value = Restore(file, a_name) dt=float
    b_value = RestoreSlice(file, b_name, b_slice) dt=float
    a_assign = Assign(a, a_value) T=float
    b_assign = Assign(b, b_value) T=float
    save/restore_all = NoOp(^a_assign, ^b_assign)
  )"));
  EXPECT_THAT(ValuesOf(MustRunGraph(frozen.graph, {}, {"y"})[0]),
              ElementsAre(4, 6));
}

TEST(FreezeSmall, RefusesACheckpointWithoutData) {
  SmallModel model;
  ASSERT_OK(model.FreezeText(
      "v = VariableV2 dtype=float shape=<2>; y = Identity(v) T=float"));
  ASSERT_EQ(std::remove((model.prefix_ + ".data-00000-of-00001").c_str()), 0);
  EXPECT_THAT(Freeze(model.options_),
              FailsWith(HasSubstr("cannot read \"v\" from the checkpoint")));
}

// Runs for every type that a variable can have.
class FreezeType : public testing::TestWithParam<DataType> {};

TEST_P(FreezeType, KeepsTheBits) {
  Tensor value(GetParam(), TensorShape({2}));
  if (GetParam() == tensorflow::DT_STRING) {
    value.flat<tensorflow::tstring>()(0) = "a\0b";
    value.flat<tensorflow::tstring>()(1) = std::string(100, 'x');
  } else {
    char* bytes = static_cast<char*>(value.data());
    for (size_t i = 0; i < value.TotalBytes(); ++i) {
      bytes[i] = GetParam() == tensorflow::DT_BOOL ? i % 2 : 3 * i + 1;
    }
  }
  SmallModel model;
  model.Save("y", value);
  ASSERT_OK_AND_ASSIGN(
      const auto frozen,
      model.FreezeText(absl::StrCat("y = VariableV2 shape=<2> dtype=",
                                    tensorflow::DataTypeString(GetParam()))));
  const Tensor constant = ConstNamed(frozen.graph, "y");
  EXPECT_EQ(constant.dtype(), GetParam());
  if (GetParam() == tensorflow::DT_STRING) {
    EXPECT_EQ(constant.flat<tensorflow::tstring>()(1),
              value.flat<tensorflow::tstring>()(1));
  } else {
    EXPECT_TRUE(constant.tensor_data() == value.tensor_data());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Types, FreezeType,
    testing::Values(tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE,
                    tensorflow::DT_HALF, tensorflow::DT_BFLOAT16,
                    tensorflow::DT_INT8, tensorflow::DT_UINT8,
                    tensorflow::DT_INT32, tensorflow::DT_INT64,
                    tensorflow::DT_QINT8, tensorflow::DT_QUINT8,
                    tensorflow::DT_QINT32, tensorflow::DT_BOOL,
                    tensorflow::DT_STRING, tensorflow::DT_COMPLEX64));

}  // namespace
}  // namespace requant::freeze_small_test
