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

  // Each returns the name, for other nodes' inputs. What is fed is no constant
  // to TensorFlow, which has other kernels for those.
  std::string Feed(const std::string& name, const tensorflow::Tensor& value);
  std::string Constant(const std::string& name,
                       const tensorflow::Tensor& value);
  std::string Constant(const std::string& name, float value);
  std::string Add(const std::string& name, const std::string& op,
                  const std::vector<std::string>& inputs,
                  const std::vector<AttributeText>& attributes = {});

  // What the next run feeds instead, of the same type.
  void FeedAnew(const std::string& name, const tensorflow::Tensor& value);

  // Runs the graph, always in the same session of this process. The first run
  // ends the building.
  absl::StatusOr<std::vector<tensorflow::Tensor>> Run(
      const std::vector<std::string>& fetches);

 private:
  tensorflow::GraphDef graph_;
  std::vector<std::pair<std::string, tensorflow::Tensor>> feeds_;
  std::unique_ptr<tensorflow::Session> session_;
};

// Filled with `values`, row by row. Codes are given as ints whatever their
// type.
tensorflow::Tensor FloatTensor(const std::vector<int>& shape,
                               const std::vector<float>& values);
tensorflow::Tensor IntTensor(const std::vector<int>& shape,
                             const std::vector<int>& values);
tensorflow::Tensor CodeTensor(tensorflow::DataType type,
                              const std::vector<int>& shape,
                              const std::vector<int>& codes);

std::vector<float> Floats(const tensorflow::Tensor& tensor);
// Of a quint8, qint8 or qint32 tensor.
std::vector<int> Codes(const tensorflow::Tensor& tensor);

}  // namespace requant

#endif  // REQUANT_TESTS_KERNELS_KERNEL_GRAPH_H_
