// Ops that only move elements: which of them have kernels for quantized types,
// and that quantization commutes with them bit by bit.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <tuple>

#include "tests/kernels/kernel_graph.h"

// This file is compiled with -ffp-contract=off: the formula for quantization
// rounds every product and every sum to a float.

namespace requant::other_ops_test {
namespace {

using tensorflow::DataType;
using tensorflow::DT_QINT8;
using tensorflow::DT_QUINT8;
using testing::AnyOf;

constexpr int kRows = 6;
constexpr int kColumns = 4;

AttributeText TypeAttribute(const std::string& name, DataType type) {
  return {name, absl::StrCat("type: ", DataType_Name(type))};
}

const AttributeText kIntIndex = {"Index", "type: DT_INT32"};
const AttributeText kIntIndices = {"Tindices", "type: DT_INT32"};

// An op on "x", kRows by kColumns codes, and constants "c0", "c1"…
struct MovingOp {
  std::string op;
  std::vector<std::string> inputs;
  std::vector<Tensor> constants;
  std::vector<AttributeText> attributes;
  std::string type_attribute = "T";
};

absl::StatusOr<Tensor> Move(const MovingOp& moving, DataType type) {
  std::vector<int> codes(kRows * kColumns);
  std::iota(codes.begin(), codes.end(), 1);
  KernelGraph graph;
  graph.Feed("x", CodeTensor(type, {kRows, kColumns}, codes));
  for (int i = 0; i < moving.constants.size(); ++i) {
    graph.Constant(absl::StrCat("c", i), moving.constants[i]);
  }
  std::vector<AttributeText> attributes = moving.attributes;
  attributes.push_back(TypeAttribute(moving.type_attribute, type));
  graph.Add("y", moving.op, moving.inputs, attributes);
  const auto outputs = graph.Run({"y"});
  if (!outputs.ok()) return outputs.status();
  return (*outputs)[0];
}

// Places in "x", counted from 1; 0 for none.
std::vector<int> Range(int first, int last) {
  std::vector<int> places(last - first + 1);
  std::iota(places.begin(), places.end(), first);
  return places;
}

struct WorkingOp {
  MovingOp moving;
  std::vector<int> places;
};

std::vector<WorkingOp> WorkingOps() {
  const Tensor zero = IntTensor({}, {0});
  const std::vector<int> all = Range(1, kRows * kColumns);
  std::vector<int> twice = all;
  twice.insert(twice.end(), all.begin(), all.end());
  // A pad's zeros are codes, which stand for a range's minimum, not for 0.
  std::vector<int> padded(kColumns, 0);
  padded.insert(padded.end(), all.begin(), all.end());
  return {
      {{"GatherV2",
        {"x", "c0", "c1"},
        {IntTensor({2}, {5, 0}), zero},
        {kIntIndices, {"Taxis", "type: DT_INT32"}},
        "Tparams"},
       {21, 22, 23, 24, 1, 2, 3, 4}},
      {{"GatherNd",
        {"x", "c0"},
        {IntTensor({2, 2}, {5, 0, 0, 3})},
        {kIntIndices},
        "Tparams"},
       {21, 4}},
      {{"Reshape",
        {"x", "c0"},
        {IntTensor({2}, {8, 3})},
        {{"Tshape", "type: DT_INT32"}}},
       all},
      {{"ConcatV2", {"x", "x", "c0"}, {zero}, {{"N", "i: 2"}}}, twice},
      {{"Slice",
        {"x", "c0", "c1"},
        {IntTensor({2}, {1, 1}), IntTensor({2}, {2, 2})},
        {kIntIndex}},
       {6, 7, 10, 11}},
      {{"StridedSlice",
        {"x", "c0", "c1", "c2"},
        {IntTensor({2}, {1, 1}), IntTensor({2}, {5, 3}),
         IntTensor({2}, {2, 1})},
        {kIntIndex}},
       {6, 7, 14, 15}},
      {{"Pack", {"x", "x"}, {}, {{"N", "i: 2"}}}, twice},
      {{"Pad",
        {"x", "c0"},
        {IntTensor({2, 2}, {1, 0, 0, 0})},
        {{"Tpaddings", "type: DT_INT32"}}},
       padded},
      {{"ExpandDims", {"x", "c0"}, {zero}, {{"Tdim", "type: DT_INT32"}}}, all},
      {{"Squeeze", {"x"}, {}, {}}, all},
      {{"Identity", {"x"}, {}, {}}, all},
  };
}

class WorkingOpTest
    : public testing::TestWithParam<std::tuple<WorkingOp, DataType>> {};

TEST_P(WorkingOpTest, MovesCodes) {
  const auto& [working, type] = GetParam();
  ASSERT_OK_AND_ASSIGN(const auto output, Move(working.moving, type));
  EXPECT_EQ(Codes(output), working.places);
}

INSTANTIATE_TEST_SUITE_P(, WorkingOpTest,
                         testing::Combine(testing::ValuesIn(WorkingOps()),
                                          testing::Values(DT_QUINT8, DT_QINT8)),
                         [](const auto& info) {
                           return absl::StrCat(
                               std::get<0>(info.param).moving.op, "_",
                               DataType_Name(std::get<1>(info.param)));
                         });

TEST(Bitcast, TakesCodesForBytes) {
  for (DataType type : {DT_QUINT8, DT_QINT8}) {
    ASSERT_OK_AND_ASSIGN(
        const auto output,
        Move({"Bitcast", {"x"}, {}, {{"type", "type: DT_UINT8"}}}, type));
    EXPECT_EQ(output.flat<uint8_t>()(7), 8);
  }
}

std::vector<MovingOp> MissingOps() {
  Tensor choice(tensorflow::DT_BOOL, {kRows, kColumns});
  choice.flat<bool>().setConstant(true);
  return {
      {"Transpose",
       {"x", "c0"},
       {IntTensor({2}, {1, 0})},
       {{"Tperm", "type: DT_INT32"}}},
      {"Tile",
       {"x", "c0"},
       {IntTensor({2}, {1, 2})},
       {{"Tmultiples", "type: DT_INT32"}}},
      {"SelectV2", {"c0", "x", "x"}, {choice}, {}},
      {"Unpack", {"x"}, {}, {{"num", "i: 6"}}},
      {"BroadcastTo",
       {"x", "c0"},
       {IntTensor({3}, {2, 6, 4})},
       {{"Tidx", "type: DT_INT32"}}},
  };
}

class MissingOpTest
    : public testing::TestWithParam<std::tuple<MovingOp, DataType>> {};

TEST_P(MissingOpTest, HasNoKernelForCodes) {
  const auto& [moving, type] = GetParam();
  EXPECT_THAT(Move(moving, type),
              FailsWith(AnyOf(HasSubstr("No OpKernel was registered"),
                              HasSubstr("data type is not supported"))))
      << "TensorFlow now has this kernel: quantization may move up through it";
}

INSTANTIATE_TEST_SUITE_P(, MissingOpTest,
                         testing::Combine(testing::ValuesIn(MissingOps()),
                                          testing::Values(DT_QUINT8, DT_QINT8)),
                         [](const auto& info) {
                           return absl::StrCat(
                               std::get<0>(info.param).op, "_",
                               DataType_Name(std::get<1>(info.param)));
                         });

TEST(Split, HasAKernelForUnsignedCodesOnly) {
  const MovingOp split = {
      "Split", {"c0", "x"}, {IntTensor({}, {0})}, {{"num_split", "i: 3"}}};
  ASSERT_OK_AND_ASSIGN(const auto output, Move(split, DT_QUINT8));
  EXPECT_EQ(Codes(output), Range(1, 8));
  EXPECT_THAT(Move(split, DT_QINT8),
              FailsWith(HasSubstr("No OpKernel was registered")));
}

constexpr float kMin = -1.37f;
constexpr float kMax = 2.91f;

// As oneDNN's kernel does it.
int Quantized(float value) {
  const float scale = 255.0f / (kMax - kMin);
  const float shifted = value * scale + -kMin * scale;
  return std::clamp<int>(std::nearbyint(shifted), 0, 255);
}

// Rows of a table, gathered twice, reshaped and joined.
void AddLookup(const Tensor& table, KernelGraph* graph) {
  const DataType type = table.dtype();
  graph->Constant("table", table);
  graph->Feed("rows", IntTensor({64}, std::vector<int>(64, 0)));
  graph->Feed("pairs", IntTensor({64, 1}, std::vector<int>(64, 0)));
  graph->Add("gathered", "GatherV2",
             {"table", "rows", graph->Constant("axis0", IntTensor({}, {0}))},
             {TypeAttribute("Tparams", type),
              kIntIndices,
              {"Taxis", "type: DT_INT32"}});
  graph->Add("gathered_nd", "GatherNd", {"table", "pairs"},
             {TypeAttribute("Tparams", type), kIntIndices});
  graph->Constant("shape", IntTensor({2}, {32, 64}));
  for (const char* name : {"gathered", "gathered_nd"}) {
    graph->Add(absl::StrCat(name, "_flat"), "Reshape", {name, "shape"},
               {TypeAttribute("T", type), {"Tshape", "type: DT_INT32"}});
  }
  graph->Add("joined", "ConcatV2",
             {"gathered_flat", "gathered_nd_flat",
              graph->Constant("axis1", IntTensor({}, {1}))},
             {TypeAttribute("T", type), {"N", "i: 2"}});
}

void FeedRows(KernelGraph* graph) {
  std::mt19937 random(6);
  std::vector<int> rows;
  for (int i = 0; i < 64; ++i) rows.push_back(random() % 1000);
  graph->FeedAnew("rows", IntTensor({64}, rows));
  std::reverse(rows.begin(), rows.end());
  graph->FeedAnew("pairs", IntTensor({64, 1}, rows));
}

TEST(QuantizedTable, GivesTheCodesOfAQuantizedLookupBitByBit) {
  std::mt19937 random(5);
  std::vector<float> table;
  std::vector<int> codes;
  for (int i = 0; i < 1000 * 32; ++i) {
    table.push_back(kMin + random() / 0x1p32 * (kMax - kMin));
    codes.push_back(Quantized(table.back()));
  }
  KernelGraph after;
  AddLookup(FloatTensor({1000, 32}, table), &after);
  after.Add(
      "quantized", "QuantizeV2",
      {"joined", after.Constant("min", kMin), after.Constant("max", kMax)},
      {TypeAttribute("T", DT_QUINT8), {"mode", "s: 'MIN_FIRST'"}});
  FeedRows(&after);
  ASSERT_OK_AND_ASSIGN(const auto quantized_after, after.Run({"quantized"}));
  KernelGraph before;
  AddLookup(CodeTensor(DT_QUINT8, {1000, 32}, codes), &before);
  FeedRows(&before);
  ASSERT_OK_AND_ASSIGN(const auto quantized_before, before.Run({"joined"}));
  EXPECT_EQ(Codes(quantized_before[0]), Codes(quantized_after[0]));
}

}  // namespace
}  // namespace requant::other_ops_test
