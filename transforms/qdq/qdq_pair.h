#ifndef REQUANT_TRANSFORMS_QDQ_QDQ_PAIR_H_
#define REQUANT_TRANSFORMS_QDQ_QDQ_PAIR_H_

// The four nodes that round a float tensor to eight bits: two constants, a
// QuantizeV2 and a Dequantize.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ranges/range_choice.h"
#include "ranges/range_table.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "transforms/qdq/qdq_sites.h"

namespace requant {

enum class QdqFormat {
  // 127 levels on either side of zero; at most half a step wrong.
  kQint8Scaled,
  // 256 levels from min to max. Where QuantizeV2 runs in oneDNN its zero point
  // is not rounded and that of Dequantize is, so that values are a third of a
  // step too small on the mean.
  kQuint8MinFirst,
};

// Parses the names of TensorFlow's type and mode, "qint8" and "SCALED"; the
// mode may be "". Others are an error that says why.
absl::StatusOr<QdqFormat> ParseQdqFormat(std::string_view type,
                                         std::string_view mode);

// Ends of a range as the constants hold them.
struct QdqRange {
  float min = 0;
  float max = 0;
};

// Returns the range that a format can have and that is nearest to `range`: with
// zero in it, symmetric for kQint8Scaled, and never empty: one that is too
// narrow is taken for that of zeros, which any range holds.
QdqRange FitRange(QdqFormat format, const QdqRange& range);

// Returns whether the range, with zero in it, is so narrow that there is no
// scale for it.
bool IsTooNarrow(QdqFormat format, const QdqRange& range);

struct QdqPairNames {
  std::string min;
  std::string max;
  std::string quantize;
  std::string dequantize;
};

// Returns what the nodes are called before a node `consumer` that reads output
// `output` of `producer`.
QdqPairNames NamePair(const std::string& consumer, const std::string& producer,
                      int output);

struct QdqPair {
  QdqPairNames names;
  // What is quantized, as an input names it.
  std::string tensor;
  QdqFormat format = QdqFormat::kQint8Scaled;
  QdqRange range;
  std::string device;
  // A node that the constants must wait for, to be in the same iteration of a
  // loop as the tensor is; "" if there is none.
  std::string after;
  // Whether the nodes are of a function's body, where inputs are written
  // differently.
  bool in_function = false;
};

// Returns the nodes, each after those it reads.
std::vector<tensorflow::NodeDef> MakePair(const QdqPair& pair);

// Returns what nodes that read the pair's result have as input.
std::string ResultOf(const QdqPair& pair);

struct QdqRangeOptions {
  QdqFormat format = QdqFormat::kQint8Scaled;
  // The same range for all, which the format must fit; unless there is a table.
  QdqRange fixed = {-1, 1};
  // What was observed, or null; and how a range is chosen from it.
  const RangeTable* table = nullptr;
  RangeChoiceOptions choice;
  // Sites that the table lacks stay as they are; else they are an error, but
  // for those in functions that the graph does not reach: no run of the graph
  // can observe them.
  bool skip_missing = false;
};

// Returns each site's range, or nothing where it has none. `warnings` gets a
// sentence on the latter.
absl::StatusOr<std::vector<std::optional<QdqRange>>> RangesOfSites(
    const std::vector<QdqSite>& sites, const QdqRangeOptions& options,
    std::vector<std::string>* warnings);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_QDQ_QDQ_PAIR_H_
