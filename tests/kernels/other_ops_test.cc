// Ops that only move elements: which of them have kernels for quantized types,
// and that quantization commutes with them bit by bit.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <tuple>

#include "absl/strings/substitute.h"
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

// Places in "x", counted from 1; 0 for none.
std::vector<int> Range(int first, int last) {
  std::vector<int> places(last - first + 1);
  std::iota(places.begin(), places.end(), first);
  return places;
}

std::vector<int> Joined(std::vector<int> a, const std::vector<int>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// An op on "x", kRows by kColumns codes, and the constant "c". `call` lacks its
// attribute for the codes' type, which comes after it.
struct MovingOp {
  std::string op;
  std::string constants;
  std::string call;
  // What comes out.
  std::vector<int> places = {};
};

absl::StatusOr<Tensor> Move(const MovingOp& moving, DataType type) {
  KernelGraph graph;
  graph.Feed("x",
             CodeTensor(type, {kRows, kColumns}, Range(1, kRows * kColumns)));
  graph.Add(absl::StrCat(moving.constants, "\ny = ", moving.op, moving.call,
                         "=", TypeText(type)));
  const auto outputs = graph.Run({"y"});
  if (!outputs.ok()) return outputs.status();
  return (*outputs)[0];
}

std::vector<MovingOp> WorkingOps() {
  const std::vector<int> all = Range(1, kRows * kColumns);
  const std::vector<int> twice = Joined(all, all);
  return {
      {"GatherV2", "c = int32<2>{5,0}; axis = int32{0}",
       "(x, c, axis) Tindices=int32 Taxis=int32 Tparams",
       Joined(Range(21, 24), Range(1, 4))},
      {"GatherNd",
       "c = int32<2,2>{5,0,0,3}",
       "(x, c) Tindices=int32 Tparams",
       {21, 4}},
      {"Reshape", "c = int32<2>{8,3}", "(x, c) Tshape=int32 T", all},
      {"ConcatV2", "c = int32{0}", "(x, x, c) N=2 T", twice},
      {"Slice",
       "c = int32<2>{1,1}; size = int32<2>{2,2}",
       "(x, c, size) Index=int32 T",
       {6, 7, 10, 11}},
      {"StridedSlice",
       "c = int32<2>{1,1}; end = int32<2>{5,3}; step = int32<2>{2,1}",
       "(x, c, end, step) Index=int32 T",
       {6, 7, 14, 15}},
      {"Pack", "", "(x, x) N=2 T", twice},
      // A pad's zeros are codes, which stand for a range's minimum, not for 0.
      {"Pad", "c = int32<2,2>{1,0,0,0}", "(x, c) Tpaddings=int32 T",
       Joined(std::vector<int>(kColumns, 0), all)},
      {"ExpandDims", "c = int32{0}", "(x, c) Tdim=int32 T", all},
      {"Squeeze", "", "(x) T", all},
      {"Identity", "", "(x) T", all},
  };
}

std::vector<MovingOp> MissingOps() {
  return {
      {"Transpose", "c = int32<2>{1,0}", "(x, c) Tperm=int32 T"},
      {"Tile", "c = int32<2>{1,2}", "(x, c) Tmultiples=int32 T"},
      {"SelectV2", "c = bool<6,4>{true}", "(c, x, x) T"},
      {"Unpack", "", "(x) num=6 T"},
      {"BroadcastTo", "c = int32<3>{2,6,4}", "(x, c) Tidx=int32 T"},
  };
}

class MovingOpTest
    : public testing::TestWithParam<std::tuple<MovingOp, DataType>> {};
class WorkingOpTest : public MovingOpTest {};
class MissingOpTest : public MovingOpTest {};

std::string Name(const testing::TestParamInfo<MovingOpTest::ParamType>& info) {
  return absl::StrCat(std::get<0>(info.param).op, "_",
                      DataType_Name(std::get<1>(info.param)));
}

TEST_P(WorkingOpTest, MovesCodes) {
  const auto& [moving, type] = GetParam();
  ASSERT_OK_AND_ASSIGN(const auto output, Move(moving, type));
  EXPECT_EQ(Codes(output), moving.places);
}

TEST_P(MissingOpTest, HasNoKernelForCodes) {
  const auto& [moving, type] = GetParam();
  EXPECT_THAT(Move(moving, type),
              FailsWith(AnyOf(HasSubstr("No OpKernel was registered"),
                              HasSubstr("data type is not supported"))))
      << "TensorFlow now has this kernel: quantization may move up through it";
}

INSTANTIATE_TEST_SUITE_P(, WorkingOpTest,
                         testing::Combine(testing::ValuesIn(WorkingOps()),
                                          testing::Values(DT_QUINT8, DT_QINT8)),
                         Name);
INSTANTIATE_TEST_SUITE_P(, MissingOpTest,
                         testing::Combine(testing::ValuesIn(MissingOps()),
                                          testing::Values(DT_QUINT8, DT_QINT8)),
                         Name);

TEST(Bitcast, TakesCodesForBytes) {
  for (DataType type : {DT_QUINT8, DT_QINT8}) {
    ASSERT_OK_AND_ASSIGN(const auto output,
                         Move({"Bitcast", "", "(x) type=uint8 T"}, type));
    EXPECT_EQ(output.flat<uint8_t>()(7), 8);
  }
}

TEST(Split, HasAKernelForUnsignedCodesOnly) {
  const MovingOp split = {"Split", "c = int32{0}", "(c, x) num_split=3 T"};
  ASSERT_OK_AND_ASSIGN(const auto output, Move(split, DT_QUINT8));
  EXPECT_EQ(Codes(output), Range(1, 8));
  EXPECT_THAT(Move(split, DT_QINT8),
              FailsWith(HasSubstr("No OpKernel was registered")));
}

constexpr float kMin = -1.37f;
constexpr float kMax = 2.91f;

// Quantizes as oneDNN's kernel does.
int Quantized(float value) {
  const float scale = 255.0f / (kMax - kMin);
  const float shifted = value * scale + -kMin * scale;
  return std::clamp<int>(std::nearbyint(shifted), 0, 255);
}

// Rows of a table, gathered twice, reshaped and joined.
void AddLookup(const Tensor& table, KernelGraph* graph) {
  std::mt19937 random(6);
  std::vector<int> rows;
  for (int i = 0; i < 64; ++i) rows.push_back(random() % 1000);
  graph->Constant("table", table);
  graph->Feed("rows", TensorOf<int>({64}, rows));
  std::reverse(rows.begin(), rows.end());
  graph->Feed("pairs", TensorOf<int>({64, 1}, rows));
  graph->Add(absl::Substitute(R"(
    axis0 = int32{0}
    axis1 = int32{1}
    shape = int32<2>{32,64}
    gathered = GatherV2(table, rows, axis0) Tparams=$0 Tindices=int32
        Taxis=int32
    gathered_nd = GatherNd(table, pairs) Tparams=$0 Tindices=int32
    flat = Reshape(gathered, shape) T=$0 Tshape=int32
    flat_nd = Reshape(gathered_nd, shape) T=$0 Tshape=int32
    joined = ConcatV2(flat, flat_nd, axis1) T=$0 N=2
  )",
                              TypeText(table.dtype())));
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
  AddLookup(TensorOf<float>({1000, 32}, table), &after);
  after.Constant("min", kMin);
  after.Constant("max", kMax);
  after.Add(
      "quantized = QuantizeV2(joined, min, max) T=quint8 "
      "mode='MIN_FIRST'");
  ASSERT_OK_AND_ASSIGN(const auto quantized_after, after.Run({"quantized"}));
  KernelGraph before;
  AddLookup(CodeTensor(DT_QUINT8, {1000, 32}, codes), &before);
  ASSERT_OK_AND_ASSIGN(const auto quantized_before, before.Run({"joined"}));
  EXPECT_EQ(Codes(quantized_before[0]), Codes(quantized_after[0]));
}

}  // namespace
}  // namespace requant::other_ops_test
