#include "graph/testing/verify_test_graphs.h"

#include <string>
#include <vector>

namespace requant {
namespace {

constexpr char kFrozen[] = R"pb(
  node {
    name: "x"
    op: "Placeholder"
    attr {
      key: "dtype"
      value { type: DT_FLOAT }
    }
    attr {
      key: "shape"
      value {
        shape {
          dim { size: -1 }
          dim { size: 3 }
        }
      }
    }
  }
  node {
    name: "w"
    op: "Const"
    attr {
      key: "dtype"
      value { type: DT_FLOAT }
    }
    attr {
      key: "value"
      value {
        tensor {
          dtype: DT_FLOAT
          tensor_shape {
            dim { size: 3 }
            dim { size: 2 }
          }
          float_val: 1
        }
      }
    }
    attr {
      key: "_output_shapes"
      value { list { shape { unknown_rank: true } } }
    }
  }
  node {
    name: "b"
    op: "Const"
    attr {
      key: "dtype"
      value { type: DT_FLOAT }
    }
    attr {
      key: "value"
      value {
        tensor {
          dtype: DT_FLOAT
          tensor_shape { dim { size: 2 } }
          tensor_content: "\000\000\200?\000\000\200?"
        }
      }
    }
  }
  node {
    name: "matmul"
    op: "MatMul"
    input: "x"
    input: "w"
    attr {
      key: "T"
      value { type: DT_FLOAT }
    }
  }
  node {
    name: "add"
    op: "BiasAdd"
    input: "matmul"
    input: "b"
    attr {
      key: "T"
      value { type: DT_FLOAT }
    }
  }
  node {
    name: "axis"
    op: "Const"
    attr {
      key: "dtype"
      value { type: DT_INT32 }
    }
    attr {
      key: "value"
      value {
        tensor {
          dtype: DT_INT32
          tensor_shape {}
          int_val: 1
        }
      }
    }
  }
  node {
    name: "split"
    op: "Split"
    input: "axis"
    input: "add"
    input: "^b"
    attr {
      key: "T"
      value { type: DT_FLOAT }
    }
    attr {
      key: "num_split"
      value { i: 2 }
    }
  }
  node {
    name: "scores"
    op: "AddV2"
    input: "split:0"
    input: "split:1"
    attr {
      key: "T"
      value { type: DT_FLOAT }
    }
  }
  node { name: "init" op: "NoOp" input: "^scores" }
  versions { producer: 1882 min_consumer: 12 }
)pb";

// i = 0; while (i < limit) i = i + 1
constexpr char kWhileLoop[] = R"pb(
  node {
    name: "zero"
    op: "Const"
    attr {
      key: "dtype"
      value { type: DT_INT32 }
    }
    attr {
      key: "value"
      value {
        tensor {
          dtype: DT_INT32
          tensor_shape {}
          int_val: 0
        }
      }
    }
  }
  node {
    name: "enter"
    op: "Enter"
    input: "zero"
    attr {
      key: "T"
      value { type: DT_INT32 }
    }
    attr {
      key: "frame_name"
      value { s: "loop" }
    }
  }
  node {
    name: "merge"
    op: "Merge"
    input: "enter"
    input: "next"
    attr {
      key: "T"
      value { type: DT_INT32 }
    }
    attr {
      key: "N"
      value { i: 2 }
    }
  }
  node {
    name: "limit"
    op: "Const"
    input: "^merge"
    attr {
      key: "dtype"
      value { type: DT_INT32 }
    }
    attr {
      key: "value"
      value {
        tensor {
          dtype: DT_INT32
          tensor_shape {}
          int_val: 10
        }
      }
    }
  }
  node {
    name: "less"
    op: "Less"
    input: "merge"
    input: "limit"
    attr {
      key: "T"
      value { type: DT_INT32 }
    }
  }
  node { name: "condition" op: "LoopCond" input: "less" }
  node {
    name: "switch"
    op: "Switch"
    input: "merge"
    input: "condition"
    attr {
      key: "T"
      value { type: DT_INT32 }
    }
  }
  node {
    name: "one"
    op: "Const"
    input: "^switch"
    attr {
      key: "dtype"
      value { type: DT_INT32 }
    }
    attr {
      key: "value"
      value {
        tensor {
          dtype: DT_INT32
          tensor_shape {}
          int_val: 1
        }
      }
    }
  }
  node {
    name: "plus"
    op: "Add"
    input: "switch:1"
    input: "one"
    attr {
      key: "T"
      value { type: DT_INT32 }
    }
  }
  node {
    name: "next"
    op: "NextIteration"
    input: "plus"
    attr {
      key: "T"
      value { type: DT_INT32 }
    }
  }
  node {
    name: "exit"
    op: "Exit"
    input: "switch"
    attr {
      key: "T"
      value { type: DT_INT32 }
    }
  }
)pb";

constexpr char kFunctions[] = R"pb(
  node {
    name: "x"
    op: "Placeholder"
    attr {
      key: "dtype"
      value { type: DT_FLOAT }
    }
  }
  node {
    name: "flag"
    op: "Placeholder"
    attr {
      key: "dtype"
      value { type: DT_BOOL }
    }
    attr {
      key: "shape"
      value { shape {} }
    }
  }
  node {
    name: "call"
    op: "PartitionedCall"
    input: "x"
    attr {
      key: "Tin"
      value { list { type: DT_FLOAT } }
    }
    attr {
      key: "Tout"
      value { list { type: DT_FLOAT type: DT_FLOAT } }
    }
    attr {
      key: "f"
      value { func { name: "__inference_double_7" } }
    }
  }
  node {
    name: "if"
    op: "StatelessIf"
    input: "flag"
    input: "call"
    attr {
      key: "Tcond"
      value { type: DT_BOOL }
    }
    attr {
      key: "Tin"
      value { list { type: DT_FLOAT } }
    }
    attr {
      key: "Tout"
      value { list { type: DT_FLOAT type: DT_FLOAT } }
    }
    attr {
      key: "then_branch"
      value { func { name: "__inference_double_7" } }
    }
    attr {
      key: "else_branch"
      value { func { name: "__inference_double_7" } }
    }
    attr {
      key: "output_shapes"
      value { list {} }
    }
  }
  node {
    name: "while"
    op: "StatelessWhile"
    input: "if:1"
    attr {
      key: "T"
      value { list { type: DT_FLOAT } }
    }
    attr {
      key: "cond"
      value { func { name: "small" } }
    }
    attr {
      key: "body"
      value {
        func {
          name: "triple"
          attr {
            key: "T"
            value { type: DT_FLOAT }
          }
        }
      }
    }
  }
  node {
    name: "legacy"
    op: "triple"
    input: "while"
    attr {
      key: "T"
      value { type: DT_FLOAT }
    }
  }
  library {
    function {
      signature {
        name: "__inference_double_7"
        input_arg { name: "x" type: DT_FLOAT }
        output_arg { name: "same" type: DT_FLOAT }
        output_arg { name: "twice" type: DT_FLOAT }
        control_output: "done"
      }
      node_def {
        name: "sum"
        op: "AddV2"
        input: "x"
        input: "x:0"
        attr {
          key: "T"
          value { type: DT_FLOAT }
        }
      }
      node_def {
        name: "both"
        op: "IdentityN"
        input: "x"
        input: "sum:z:0"
        input: "^sum"
        attr {
          key: "T"
          value { list { type: DT_FLOAT type: DT_FLOAT } }
        }
      }
      node_def {
        name: "pack"
        op: "AddN"
        input: "both:output:0"
        input: "both:output:1"
        attr {
          key: "T"
          value { type: DT_FLOAT }
        }
        attr {
          key: "N"
          value { i: 2 }
        }
      }
      node_def { name: "flush" op: "NoOp" input: "^x" }
      ret { key: "same" value: "x" }
      ret { key: "twice" value: "both:output:1" }
      control_ret { key: "done" value: "flush" }
    }
    function {
      signature {
        name: "small"
        input_arg { name: "x" type: DT_FLOAT }
        output_arg { name: "result" type: DT_BOOL }
      }
      node_def {
        name: "limit"
        op: "Const"
        attr {
          key: "dtype"
          value { type: DT_FLOAT }
        }
        attr {
          key: "value"
          value {
            tensor {
              dtype: DT_FLOAT
              tensor_shape {}
              float_val: 9
            }
          }
        }
      }
      node_def {
        name: "less"
        op: "Less"
        input: "x"
        input: "limit:output:0"
        attr {
          key: "T"
          value { type: DT_FLOAT }
        }
      }
      ret { key: "result" value: "less:z:0" }
    }
    function {
      signature {
        name: "triple"
        input_arg { name: "x" type_attr: "T" }
        output_arg { name: "y" type_attr: "T" }
        attr { name: "T" type: "type" }
      }
      node_def {
        name: "sum"
        op: "AddN"
        input: "x"
        input: "x"
        input: "x"
        attr {
          key: "T"
          value { placeholder: "T" }
        }
        attr {
          key: "N"
          value { i: 3 }
        }
      }
      ret { key: "y" value: "sum:sum:0" }
    }
    gradient { function_name: "small" gradient_func: "triple" }
  }
)pb";

constexpr char kVariables[] = R"pb(
  node {
    name: "value"
    op: "Const"
    attr {
      key: "dtype"
      value { type: DT_FLOAT }
    }
    attr {
      key: "value"
      value {
        tensor {
          dtype: DT_FLOAT
          tensor_shape { dim { size: 2 } }
          float_val: 1
        }
      }
    }
  }
  node {
    name: "ref"
    op: "VariableV2"
    attr {
      key: "dtype"
      value { type: DT_FLOAT }
    }
    attr {
      key: "shape"
      value { shape { dim { size: 2 } } }
    }
    attr {
      key: "container"
      value { s: "" }
    }
    attr {
      key: "shared_name"
      value { s: "" }
    }
  }
  node {
    name: "assign"
    op: "Assign"
    input: "ref"
    input: "value"
    attr {
      key: "T"
      value { type: DT_FLOAT }
    }
    attr {
      key: "_class"
      value { list { s: "loc:@ref" } }
    }
  }
  node {
    name: "read"
    op: "Identity"
    input: "ref"
    input: "^assign"
    attr {
      key: "T"
      value { type: DT_FLOAT }
    }
  }
  node {
    name: "handle"
    op: "VarHandleOp"
    attr {
      key: "dtype"
      value { type: DT_FLOAT }
    }
    attr {
      key: "shape"
      value { shape { dim { size: 2 } } }
    }
  }
  node {
    name: "assign_resource"
    op: "AssignVariableOp"
    input: "handle"
    input: "read"
    attr {
      key: "dtype"
      value { type: DT_FLOAT }
    }
  }
  node {
    name: "read_resource"
    op: "ReadVariableOp"
    input: "handle"
    input: "^assign_resource"
    attr {
      key: "dtype"
      value { type: DT_FLOAT }
    }
  }
  node {
    name: "sum"
    op: "AddV2"
    input: "read_resource"
    input: "assign"
    attr {
      key: "T"
      value { type: DT_FLOAT }
    }
  }
)pb";

constexpr char kQuantized[] = R"pb(
  node {
    name: "x"
    op: "Placeholder"
    attr {
      key: "dtype"
      value { type: DT_FLOAT }
    }
    attr {
      key: "shape"
      value {
        shape {
          dim { size: -1 }
          dim { size: 2 }
        }
      }
    }
  }
  node {
    name: "low"
    op: "Const"
    attr {
      key: "dtype"
      value { type: DT_FLOAT }
    }
    attr {
      key: "value"
      value {
        tensor {
          dtype: DT_FLOAT
          tensor_shape {}
          float_val: -1
        }
      }
    }
  }
  node {
    name: "high"
    op: "Const"
    attr {
      key: "dtype"
      value { type: DT_FLOAT }
    }
    attr {
      key: "value"
      value {
        tensor {
          dtype: DT_FLOAT
          tensor_shape {}
          float_val: 1
        }
      }
    }
  }
  node {
    name: "weights"
    op: "Const"
    attr {
      key: "dtype"
      value { type: DT_QINT8 }
    }
    attr {
      key: "value"
      value {
        tensor {
          dtype: DT_QINT8
          tensor_shape {
            dim { size: 2 }
            dim { size: 3 }
          }
          tensor_content: "\001\002\003\004\005\006"
        }
      }
    }
  }
  node {
    name: "bias"
    op: "Const"
    attr {
      key: "dtype"
      value { type: DT_FLOAT }
    }
    attr {
      key: "value"
      value {
        tensor {
          dtype: DT_FLOAT
          tensor_shape { dim { size: 3 } }
          float_val: 0
        }
      }
    }
  }
  node {
    name: "quantize"
    op: "QuantizeV2"
    input: "x"
    input: "low"
    input: "high"
    attr {
      key: "T"
      value { type: DT_QUINT8 }
    }
    attr {
      key: "mode"
      value { s: "MIN_FIRST" }
    }
  }
  node {
    name: "matmul"
    op: "QuantizedMatMulWithBiasAndRelu"
    input: "quantize"
    input: "weights"
    input: "bias"
    input: "quantize:1"
    input: "quantize:2"
    input: "low"
    input: "high"
    attr {
      key: "T1"
      value { type: DT_QUINT8 }
    }
    attr {
      key: "T2"
      value { type: DT_QINT8 }
    }
    attr {
      key: "Toutput"
      value { type: DT_QINT32 }
    }
    attr {
      key: "input_quant_mode"
      value { s: "MIN_FIRST" }
    }
  }
  node {
    name: "range"
    op: "RequantizationRange"
    input: "matmul"
    input: "matmul:1"
    input: "matmul:2"
    attr {
      key: "Tinput"
      value { type: DT_QINT32 }
    }
  }
  node {
    name: "requantize"
    op: "Requantize"
    input: "matmul"
    input: "matmul:1"
    input: "matmul:2"
    input: "range"
    input: "range:1"
    attr {
      key: "Tinput"
      value { type: DT_QINT32 }
    }
    attr {
      key: "out_type"
      value { type: DT_QUINT8 }
    }
  }
  node {
    name: "y"
    op: "Dequantize"
    input: "requantize"
    input: "requantize:1"
    input: "requantize:2"
    attr {
      key: "T"
      value { type: DT_QUINT8 }
    }
    attr {
      key: "mode"
      value { s: "MIN_FIRST" }
    }
  }
)pb";

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
