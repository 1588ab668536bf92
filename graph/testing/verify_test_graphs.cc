#include "graph/testing/verify_test_graphs.h"

#include <string>
#include <vector>

namespace requant {
namespace {

constexpr char kFrozen[] = R"(
  x = Placeholder dtype=float shape=<?,3>
  w = float<3,2>{1} _output_shapes=[<*>]
  b = float<2>'\000\000\200?\000\000\200?'
  matmul = MatMul(x, w) T=float
  add = BiasAdd(matmul, b) T=float
  axis = int32{1}
  split = Split(axis, add, ^b) T=float num_split=2
  scores = AddV2(split:0, split:1) T=float
  init = NoOp(^scores)
  versions { producer: 1882 min_consumer: 12 }
)";

// i = 0; while (i < limit) i = i + 1
constexpr char kWhileLoop[] = R"(
  zero = int32{0}
  enter = Enter(zero) T=int32 frame_name='loop'
  merge = Merge(enter, next) T=int32 N=2
  limit = Const(^merge) dtype=int32 value=int32{10}
  less = Less(merge, limit) T=int32
  condition = LoopCond(less)
  switch = Switch(merge, condition) T=int32
  one = Const(^switch) dtype=int32 value=int32{1}
  plus = Add(switch:1, one) T=int32
  next = NextIteration(plus) T=int32
  exit = Exit(switch) T=int32
)";

constexpr char kFunctions[] = R"(
  x = Placeholder dtype=float
  flag = Placeholder dtype=bool shape=<>
  call = PartitionedCall(x) Tin=[float] Tout=[float,float]
      f=@__inference_double_7
  if = StatelessIf(flag, call) Tcond=bool Tin=[float] Tout=[float,float]
      then_branch=@__inference_double_7 else_branch=@__inference_double_7
      output_shapes=[]
  while = StatelessWhile(if:1) T=[float] cond=@small body=@triple(T=float)
  legacy = triple(while) T=float
  function __inference_double_7(x) -> (same=x, twice=both:output:1) {
    signature { control_output: "done" }
    sum = AddV2(x, x:0) T=float
    both = IdentityN(x, sum:z:0, ^sum) T=[float,float]
    pack = AddN(both:output:0, both:output:1) T=float N=2
    flush = NoOp(^x)
    control_ret { key: "done" value: "flush" }
  }
  function small(x) -> (result:bool=less:z:0) {
    limit = float{9}
    less = Less(x, limit:output:0) T=float
  }
  function triple(x:$T) -> (y:$T=sum:sum:0) {
    signature { attr { name: "T" type: "type" } }
    sum = AddN(x, x, x) T=$T N=3
  }
  library { gradient { function_name: "small" gradient_func: "triple" } }
)";

constexpr char kVariables[] = R"(
  value = float<2>{1}
  ref = VariableV2 dtype=float shape=<2> container='' shared_name=''
  assign = Assign(ref, value) T=float _class=['loc:@ref']
  read = Identity(ref, ^assign) T=float
  handle = VarHandleOp dtype=float shape=<2>
  assign_resource = AssignVariableOp(handle, read) dtype=float
  read_resource = ReadVariableOp(handle, ^assign_resource) dtype=float
  sum = AddV2(read_resource, assign) T=float
)";

constexpr char kQuantized[] = R"(
  x = Placeholder dtype=float shape=<?,2>
  low = float{-1}
  high = float{1}
  weights = qint8<2,3>'\001\002\003\004\005\006'
  bias = float<3>{0}
  quantize = QuantizeV2(x, low, high) T=quint8 mode='MIN_FIRST'
  matmul = QuantizedMatMulWithBiasAndRelu(quantize, weights, bias, quantize:1,
      quantize:2, low, high) T1=quint8 T2=qint8 Toutput=qint32
      input_quant_mode='MIN_FIRST'
  range = RequantizationRange(matmul, matmul:1, matmul:2) Tinput=qint32
  requantize = Requantize(matmul, matmul:1, matmul:2, range, range:1)
      Tinput=qint32 out_type=quint8
  y = Dequantize(requantize, requantize:1, requantize:2) T=quint8
      mode='MIN_FIRST'
)";

}  // namespace

const std::vector<NamedGraph>& ValidGraphs() {
  static const auto* graphs = new std::vector<NamedGraph>{
      {"Frozen", kFrozen},       {"WhileLoop", kWhileLoop},
      {"Functions", kFunctions}, {"Variables", kVariables},
      {"Quantized", kQuantized},
  };
  return *graphs;
}

}  // namespace requant
