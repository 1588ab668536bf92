#ifndef REQUANT_TESTS_KERNELS_KERNEL_GRAPH_H_
#define REQUANT_TESTS_KERNELS_KERNEL_GRAPH_H_

// For tests of TensorFlow's own kernels: a graph built node by node, and
// tensors of quantized types filled with codes.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/testing/testing.h"

namespace tensorflow {
class Session;
}  // namespace tensorflow

namespace requant {

class KernelGraph {
 public:
  KernelGraph();
  ~KernelGraph();
  KernelGraph(const KernelGraph&) = delete;
  KernelGraph& operator=(const KernelGraph&) = delete;

  // Add one node each. What is fed is no constant to TensorFlow, which has
  // other kernels for constants.
  void Feed(const std::string& name, const Tensor& value);
  void Constant(const std::string& name, const Tensor& value);
  void Constant(const std::string& name, float value);
  // Adds nodes written as in graph_text.h.
  void Add(const std::string& lines);

  // Sets what the next run feeds instead, of the same type.
  void FeedAnew(const std::string& name, const Tensor& value);

  // Runs the graph, always in the same session of this process. The first run
  // ends the building.
  absl::StatusOr<std::vector<Tensor>> Run(
      const std::vector<std::string>& fetches);

 private:
  GraphDef graph_;
  std::vector<std::pair<std::string, Tensor>> feeds_;
  std::unique_ptr<tensorflow::Session> session_;
};

// Returns a tensor of quint8, qint8 or qint32 with these codes, row by row, and
// the codes of such a tensor.
Tensor CodeTensor(tensorflow::DataType type,
                  const tensorflow::TensorShape& shape,
                  const std::vector<int>& codes);
std::vector<int> Codes(const Tensor& tensor);

// Returns the type's name as in graph_text.h: "quint8".
std::string TypeText(tensorflow::DataType type);

}  // namespace requant

#endif  // REQUANT_TESTS_KERNELS_KERNEL_GRAPH_H_
