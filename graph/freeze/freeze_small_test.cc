// Small models made by hand: one rule each.

#include <cstdio>

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

Tensor Floats(const std::vector<float>& values) {
  return TensorOf(TensorShape({static_cast<int64_t>(values.size())}), values);
}

// A variable "v" of two floats that "y" reads.
constexpr char kOneVariable[] = R"(
  v = VariableV2 dtype=float shape=<2>
  y = Identity(v) T=float
)";

// Writes a model with one output "y" and a checkpoint; every test has files of
// its own.
class FreezeSmall : public testing::Test {
 protected:
  FreezeSmall() {
    options_.outputs = {"y"};
    options_.files.graph = prefix_ + ".pb";
    options_.files.checkpoint = prefix_;
  }

  void Save(const std::string& key, const Tensor& value) {
    ASSERT_OK(writer_.Add(key, value));
    saved_ = true;
  }

  void SaveSlice(const std::string& key, int64_t size, const char* slice,
                 const Tensor& value) {
    ASSERT_OK(writer_.AddSlice(key, TensorShape({size}),
                               TensorSlice::ParseOrDie(slice), value));
    saved_ = true;
  }

  // Freezes a graph. Unless something else was saved before, the checkpoint
  // has "v" = [1, 2].
  absl::StatusOr<FrozenGraph> FreezeText(const std::string& text) {
    if (!saved_) Save("v", Floats({1, 2}));
    if (!std::exchange(finished_, true)) {
      EXPECT_OK(writer_.Finish());
    }
    EXPECT_OK(WriteGraph(GraphFromText(text), options_.files.graph,
                         GraphFormat::kBinary));
    return Freeze(options_);
  }

  // Returns what "y" is after freezing.
  Tensor ValueOf(const std::string& text) {
    const auto frozen = FreezeText(text);
    EXPECT_OK(frozen);
    if (!frozen.ok()) return Tensor();
    return MustRunGraph(frozen->graph, {}, {"y"})[0];
  }

  std::vector<float> FloatsOf(const std::string& text) {
    return ValuesOf(ValueOf(text));
  }

  TestFolder folder_;
  const std::string prefix_ = folder_.Path("model");
  tensorflow::BundleWriter writer_{tensorflow::Env::Default(), prefix_};
  bool saved_ = false, finished_ = false;
  FreezeOptions options_;
};

TEST_F(FreezeSmall, KeepsOnlyWhatTheOutputsNeed) {
  ASSERT_OK_AND_ASSIGN(const auto frozen,
                       FreezeText(absl::StrCat(kOneVariable, R"(
    other = VariableV2 dtype=float shape=<2>
    z = Identity(other) T=float
  )")));
  EXPECT_EQ(frozen.graph.node_size(), 2);
  EXPECT_EQ(frozen.variables, 1);
  EXPECT_EQ(frozen.variable_bytes, 8);
}

TEST_F(FreezeSmall, FindsPartsOfAVariableByTheirShapes) {
  SaveSlice("v", 5, "0,3", Floats({1, 2, 3}));
  SaveSlice("v", 5, "3,2", Floats({4, 5}));
  EXPECT_THAT(FloatsOf(R"(
    v/part_0 = VarHandleOp dtype=float shape=<3>
    v/part_1 = VarHandleOp dtype=float shape=<2>
    y = ReadVariableOp(v/part_1) dtype=float
  )"),
              ElementsAre(4, 5));
}

TEST_F(FreezeSmall, RestoresAsTheGraphSays) {
  Save("v/ExponentialMovingAverage", Floats({7, 8}));
  Save("v", Floats({1, 2}));
  EXPECT_THAT(FloatsOf(absl::StrCat(kOneVariable, R"(
    names = string<1>{'v/ExponentialMovingAverage'}
    slices = string<1>{''}
    restore = RestoreV2(names, names, slices) dtypes=[float]
    assign = Assign(v, restore) T=float
    save/restore_all = NoOp(^assign)
  )")),
              ElementsAre(7, 8));
}

// The graph and the checkpoint of a Saver from before TensorFlow 1.0.
TEST_F(FreezeSmall, RestoresTheFirstFormatAsTheGraphSays) {
  options_.files.checkpoint = prefix_ + ".ckpt";
  tensorflow::checkpoint::TensorSliceWriter writer(
      options_.files.checkpoint,
      tensorflow::checkpoint::CreateTableTensorSliceBuilder);
  const float values[] = {1, 2, 3, 4, 5};
  ASSERT_OK(writer.Add("whole", TensorShape({2}), TensorSlice(1), values));
  for (const char* slice : {"0,3", "3,2"}) {
    const TensorSlice part = TensorSlice::ParseOrDie(slice);
    ASSERT_OK(
        writer.Add("parts", TensorShape({5}), part, values + part.start(0)));
  }
  ASSERT_OK(writer.Finish());
  EXPECT_THAT(FloatsOf(R"(
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
  )"),
              ElementsAre(4, 6));
}

TEST_F(FreezeSmall, AnswersWhetherVariablesAreInitialized) {
  Save("v", Floats({1, 2}));
  Save("w", Floats({1, 2}));
  const Tensor value = ValueOf(R"(
    v = VariableV2 dtype=float shape=<2>
    w = VarHandleOp dtype=float shape=<2>
    a = IsVariableInitialized(v) dtype=float
    b = VarIsInitializedOp(w)
    y = LogicalAnd(a, b)
  )");
  ASSERT_EQ(value.dtype(), tensorflow::DT_BOOL);
  EXPECT_TRUE(value.scalar<bool>()());
}

TEST_F(FreezeSmall, GathersFromBatchesAndAsksForShapes) {
  Tensor table(tensorflow::DT_FLOAT, TensorShape({2, 3}));
  for (int i = 0; i < 6; ++i) table.flat<float>()(i) = i;
  Save("v", table);
  // Rows [2] and [3] plus the shape [2, 3].
  EXPECT_THAT(FloatsOf(R"(
    v = VarHandleOp dtype=float shape=<2,3>
    ids = int32<2,1>{2,0}
    rows = ResourceGather(v, ids) dtype=float Tindices=int32 batch_dims=1
    shape = VariableShape(v)
    cast = Cast(shape) SrcT=int32 DstT=float
    y = Add(rows, cast) T=float
  )"),
              ElementsAre(4, 5, 5, 6));
}

TEST_F(FreezeSmall, DropsTheWaitForAssignments) {
  ASSERT_OK_AND_ASSIGN(const auto frozen, FreezeText(R"(
    v = VarHandleOp dtype=float shape=<2>
    r = ReadVariableOp(v) dtype=float
    assign = AssignVariableOp(v, r) dtype=float
    group = NoOp(^assign, ^r)
    y = Identity(r, ^group) T=float
  )"));
  EXPECT_THAT(NodeNamed(frozen.graph, "y").input(), ElementsAre("r"));
  EXPECT_THAT(frozen.notes, ElementsAre(HasSubstr("left out: assign")));
}

TEST_F(FreezeSmall, LeavesVariablesThatAreToStay) {
  options_.kept_variables = {"w"};
  ASSERT_OK_AND_ASSIGN(const auto frozen, FreezeText(R"(
    v = VarHandleOp dtype=float shape=<2>
    w = VarHandleOp dtype=float shape=<2>
    a = ReadVariableOp(v) dtype=float
    b = ReadVariableOp(w) dtype=float
    y = Add(a, b) T=float
  )"));
  EXPECT_EQ(NodeNamed(frozen.graph, "v").op(), "Const");
  EXPECT_EQ(NodeNamed(frozen.graph, "w").op(), "VarHandleOp");
  EXPECT_THAT(frozen.notes, ElementsAre(HasSubstr("stays a variable")));
}

TEST_F(FreezeSmall, FreezesOnlyTheVariablesAskedFor) {
  options_.only_variables = {"v"};
  ASSERT_OK_AND_ASSIGN(const auto frozen, FreezeText(R"(
    v = VariableV2 dtype=float shape=<2>
    w = VariableV2 dtype=float shape=<2>
    y = Add(v, w) T=float
  )"));
  EXPECT_EQ(frozen.variables, 1);
  EXPECT_EQ(NodeNamed(frozen.graph, "w").op(), "VariableV2");
}

TEST_F(FreezeSmall, KeepsDevicesOnlyWhenAsked) {
  const char text[] = R"(
    v = VariableV2 dtype=float shape=<2>
    y = Identity(v) device:'/cpu:0' T=float
  )";
  options_.clear_devices = false;
  ASSERT_OK_AND_ASSIGN(const auto kept, FreezeText(text));
  EXPECT_EQ(NodeNamed(kept.graph, "y").device(), "/cpu:0");
  options_.clear_devices = true;
  ASSERT_OK_AND_ASSIGN(const auto cleared, Freeze(options_));
  EXPECT_EQ(NodeNamed(cleared.graph, "y").device(), "");
}

// Returns a variable in a function that is called conditionally.
std::string Conditional(const std::string& function) {
  return absl::StrCat(R"(
    v = VarHandleOp dtype=float shape=<2>
    yes = bool{true}
    y = If(yes, v) Tcond=bool Tin=[resource] Tout=[float]
        then_branch=@f else_branch=@f
  )",
                      function);
}

TEST_F(FreezeSmall, FreezesVariablesInsideBranches) {
  EXPECT_THAT(FloatsOf(Conditional(R"(
    function f(a:resource) -> (r=read:value:0) {
      read = ReadVariableOp(a) dtype=float
    }
  )")),
              ElementsAre(1, 2));
}

// Errors.

TEST_F(FreezeSmall, SuggestsTheOutputThatWasMeantAndAsksForOne) {
  options_.outputs = {"logit"};
  EXPECT_THAT(FreezeText("logits = NoOp"),
              FailsWith(AllOf(HasSubstr("no output node \"logit\""),
                              HasSubstr("did you mean \"logits\"?"))));
  options_.outputs = {};
  EXPECT_THAT(Freeze(options_), FailsWith(HasSubstr("--output_node_names")));
}

TEST_F(FreezeSmall, NamesAVariableWithoutValue) {
  Save("dense/kernel", Floats({1, 2}));
  EXPECT_THAT(
      FreezeText(R"(
    dense/kernl = VarHandleOp dtype=float shape=<2>
    y = ReadVariableOp(dense/kernl) dtype=float
  )"),
      FailsWith(AllOf(HasSubstr("variable \"dense/kernl\" has no value"),
                      HasSubstr("did you mean \"dense/kernel\"?"))));
}

TEST_F(FreezeSmall, RefusesWhatItCannotFreeze) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      // Another shape or type than the checkpoint's.
      {"v = VarHandleOp dtype=float shape=<3>; "
       "y = ReadVariableOp(v) dtype=float",
       {"\"v\" has shape [3] in the graph", "has shape [2]"}},
      {"v = VarHandleOp dtype=int32 shape=<2>; "
       "y = ReadVariableOp(v) dtype=float",
       {"of type int32 in the graph"}},
      // An output that needs an assignment.
      {"v = VariableV2 dtype=float shape=<2>; y = AssignAdd(v, v) T=float",
       {"AssignAdd node \"y\", which changes the variable"}},
      // Variables in places that it does not know, in functions too.
      {"v = VarHandleOp dtype=float shape=<2>; "
       "pack = Pack(v, v) T=resource N=2; y = Unpack(pack) T=resource num=2",
       {"variable \"v\"", "Pack node \"pack\""}},
      {Conditional("function f(a:resource) -> (r=odd:output:0) {\n odd = "
                   "PrintV2(a)\n}"),
       {"PrintV2 node \"odd\"", "function \"f\"", "variable \"v\""}},
      {"a = Identity(y) T=float\n y = Identity(a) T=float",
       {"depends on its own output"}},
      // A table that nothing fills.
      {"table = HashTableV2 key_dtype=string value_dtype=int64; "
       "y = LookupTableSizeV2(table)",
       {"lookup table \"table\""}},
  };
  for (const auto& [graph, sentences] : cases) {
    for (const std::string& sentence : sentences) {
      EXPECT_THAT(FreezeText(graph), FailsWith(HasSubstr(sentence)));
    }
  }
}

TEST_F(FreezeSmall, RefusesACheckpointWithoutData) {
  ASSERT_OK(FreezeText(kOneVariable));
  ASSERT_EQ(std::remove((prefix_ + ".data-00000-of-00001").c_str()), 0);
  EXPECT_THAT(Freeze(options_),
              FailsWith(HasSubstr("cannot read \"v\" from the checkpoint")));
}

TEST_F(FreezeSmall, RefusesToGrowBeyondTwoGigabytesBeforeReading) {
  // The index has the shape of the whole; only one element is on the disk.
  SaveSlice("v", int64_t{600} << 20, "0,1", Floats({1}));
  EXPECT_THAT(FreezeText("v = VariableV2 dtype=float shape=<629145600>; "
                         "y = Identity(v) T=float"),
              FailsWith(HasSubstr("at most 2 GB")));
}

// Every type that a variable can have.
class FreezeType : public FreezeSmall,
                   public testing::WithParamInterface<DataType> {};

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
  Save("y", value);
  ASSERT_OK_AND_ASSIGN(
      const auto frozen,
      FreezeText(absl::StrCat("y = VariableV2 shape=<2> dtype=",
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
