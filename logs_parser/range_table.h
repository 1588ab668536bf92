#ifndef REQUANT_LOGS_PARSER_RANGE_TABLE_H_
#define REQUANT_LOGS_PARSER_RANGE_TABLE_H_

// The one type for observed ranges. A parsed log and a calibration run both
// yield a RangeTable, and the freeze transforms consume only that.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace requant {

// Where an observation comes from; printed as "file:line".
struct Place {
  std::string_view file;
  int64_t line = 0;
};

// Observations that must not be frozen into a graph.
struct RangeFault {
  int64_t count = 0;
  // "file:line" of the first one; empty when there is none.
  std::string first_place;

  void Add(const Place& place);
  void Merge(const RangeFault& other);
};

// Everything observed of one output of one node.
struct RangeEntry {
  // How many observations (lines of a log, batches of a run) there were.
  int64_t count = 0;
  // The finite values, in the order observed. An observation may have only one
  // of the two, so that mins[i] and maxs[i] need not belong together.
  std::vector<float> mins;
  std::vector<float> maxs;
  // Values that were nan or infinite; they are not in mins and maxs.
  RangeFault not_finite;
  // Observations whose min was greater than their max; both values are kept.
  RangeFault inverted;

  // Each adds one observation.
  void AddMin(float min, const Place& place);
  void AddMax(float max, const Place& place);
  void AddRange(float min, float max, const Place& place);

  // Appends the other's observations.
  void Merge(const RangeEntry& other);
};

// (node, output).
using RangeKey = std::pair<std::string, int>;
using RangeKeyView = std::pair<std::string_view, int>;

struct RangeKeyLess {
  using is_transparent = void;
  bool operator()(const RangeKeyView& a, const RangeKeyView& b) const {
    return a < b;
  }
};

class RangeTable {
 public:
  using Entries = std::map<RangeKey, RangeEntry, RangeKeyLess>;

  // Ascending by node, then output. An entry keeps its address until the table
  // is assigned to or destroyed.
  const Entries& entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }

  // The entry of that output, or null.
  const RangeEntry* Find(std::string_view node, int output = 0) const;

  // The entry of that output; an empty one is added when there is none.
  RangeEntry& FindOrAdd(std::string_view node, int output = 0);

  // Appends the other's observations to this table's.
  void Merge(const RangeTable& other);

 private:
  Entries entries_;
};

// The contents of a RangeTable file. Equal tables give equal bytes. Fails for a
// table of more than 2 GB.
absl::StatusOr<std::string> SerializeRangeTable(const RangeTable& table);

// Reads the contents of a RangeTable file. Errors name `file`: not a
// RangeTable, of a newer version, cut short, or with contents that no writer
// makes.
absl::StatusOr<RangeTable> ParseRangeTable(std::string_view contents,
                                           const std::string& file);

// The same with a file, which is written atomically.
absl::Status WriteRangeTable(const RangeTable& table, const std::string& path);
absl::StatusOr<RangeTable> ReadRangeTable(const std::string& path);

// Whether a file that starts with `head` is a RangeTable file; 32 bytes
// suffice.
bool StartsLikeRangeTable(std::string_view head);

// The value at the lower tail: of the n ascending values the one at index
// round(n * percentile / 100), clamped to [0, n - 1]. Computed in float as
// TensorFlow's freeze_requantization_ranges does, so that the choice is the
// same. `percentile` is between 0 and 100. NaN when there are no values.
float LowerPercentile(std::vector<float> values, float percentile);

// The value at the upper tail: index round(n * (1 - percentile / 100)),
// clamped.
float UpperPercentile(std::vector<float> values, float percentile);

}  // namespace requant

#endif  // REQUANT_LOGS_PARSER_RANGE_TABLE_H_
