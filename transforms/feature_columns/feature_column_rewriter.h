#ifndef REQUANT_TRANSFORMS_FEATURE_COLUMNS_FEATURE_COLUMN_REWRITER_H_
#define REQUANT_TRANSFORMS_FEATURE_COLUMNS_FEATURE_COLUMN_REWRITER_H_

// Edits of a graph that simplifying and fusing feature columns have in common.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.pb.h"
#include "transforms/feature_columns/feature_columns.h"

namespace requant {

class FeatureColumnRewriter {
 public:
  // Nodes named in `outputs` are kept under their names.
  FeatureColumnRewriter(GraphIndex* index,
                        const std::vector<std::string>& outputs);

  GraphIndex& index() { return *index_; }

  // Adds a node under `name`, or one like it that is free, and returns its
  // name.
  absl::StatusOr<std::string> AddNode(
      const std::string& name, const std::string& op,
      std::vector<std::string> inputs,
      const std::map<std::string, tensorflow::DataType>& types);
  absl::StatusOr<std::string> AddConst(const std::string& name,
                                       const tensorflow::Tensor& value);
  absl::StatusOr<std::string> AddIntegers(const std::string& name,
                                          const std::vector<int32_t>& values);
  absl::StatusOr<std::string> AddScalar(const std::string& name, int32_t value);
  // `tensor` with the shape `shape`.
  absl::StatusOr<std::string> AddReshape(const std::string& name,
                                         const std::string& tensor,
                                         const std::vector<int32_t>& shape,
                                         tensorflow::DataType type);
  absl::StatusOr<std::string> AddPlaceholder(const std::string& name,
                                             tensorflow::DataType type,
                                             const std::vector<int64_t>& shape);

  // Makes everything that reads the lookup read `tensor`, and removes what is
  // not needed any more.
  absl::Status Replace(const TableLookup& lookup, const std::string& tensor);

  // Removes `node`, unless it is read or an output, and then what only it read.
  absl::Status RemoveUnread(const std::string& node);

 private:
  GraphIndex* index_;
  std::set<std::string> outputs_;
};

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_FEATURE_COLUMNS_FEATURE_COLUMN_REWRITER_H_
