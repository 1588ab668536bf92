#ifndef REQUANT_GRAPH_VERIFY_VERIFY_REPORT_H_
#define REQUANT_GRAPH_VERIFY_VERIFY_REPORT_H_

// What the parts of the verifier share; see verify.h.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/verify/verify.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace requant {

// `text` in quotes, escaped and cut to a length that fits into a sentence.
std::string Quoted(std::string_view text);

// TensorFlow's reason for refusing something, cut to one short clause.
std::string ShortReason(std::string_view message);

class ProblemList {
 public:
  explicit ProblemList(int limit) : limit_(limit) {}

  void Add(ProblemKind kind, std::string node, std::string message) {
    if (!full()) {
      problems_.push_back({kind, std::move(node), std::move(message)});
    }
  }

  // Nothing more will be kept; whoever searches may stop.
  bool full() const {
    return limit_ > 0 && problems_.size() >= static_cast<size_t>(limit_);
  }
  bool empty() const { return problems_.empty(); }
  size_t size() const { return problems_.size(); }
  std::vector<GraphProblem> Take() { return std::move(problems_); }

 private:
  int limit_;
  std::vector<GraphProblem> problems_;
};

// A node and where it stands: in the graph, or in the body of a function.
struct NodePlace {
  const tensorflow::NodeDef& node;
  // Null in the graph itself.
  const tensorflow::OpDef* function = nullptr;

  // For GraphProblem::node.
  std::string Path() const;
  // "node \"a\" (Add)", with the function's name where there is one.
  std::string Describe() const;
};

}  // namespace requant

#endif  // REQUANT_GRAPH_VERIFY_VERIFY_REPORT_H_
