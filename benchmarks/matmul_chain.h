#ifndef REQUANT_BENCHMARKS_MATMUL_CHAIN_H_
#define REQUANT_BENCHMARKS_MATMUL_CHAIN_H_

// Cuts a graph's layers out, to measure its speed if only its matrix
// multiplications took time.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/datasets/dataset.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace requant {

struct MatMulChain {
  tensorflow::GraphDef graph;
  // The placeholder that feeds the first layer, with `width` values per record
  // of type DT_FLOAT, or of DT_UINT8 or DT_INT8 for quantized codes.
  std::string input;
  tensorflow::DataType input_type = tensorflow::DT_FLOAT;
  int64_t width = 0;
  // The output of the last layer.
  std::string output;
  int layers = 0;
};

// Cuts the longest chain of layers with constant weights out of `graph`:
// MatMul, _QuantizedMatMul or fused QuantizedMatMul… nodes, with the biases and
// activations between and after them. Ranges that the first layer takes from
// earlier nodes become 0 and 1, which does not change its speed. Fails if there
// is no such layer.
absl::StatusOr<MatMulChain> CutMatMulChain(const tensorflow::GraphDef& graph);

// Writes `records` random records for the chain to `path` (.npy) and returns a
// description of that dataset.
absl::StatusOr<DatasetSpec> WriteChainRecords(const MatMulChain& chain,
                                              int64_t records,
                                              const std::string& path);

}  // namespace requant

#endif  // REQUANT_BENCHMARKS_MATMUL_CHAIN_H_
