#ifndef REQUANT_RANGES_RANGE_TABLE_H_
#define REQUANT_RANGES_RANGE_TABLE_H_

// The one type for observed ranges. A parsed log and a calibration run both
// yield a RangeTable, and the freeze transforms consume only that.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ranges/channel_moments.h"
#include "ranges/value_histogram.h"

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
  // Adds `added` of them, the first at `place`.
  void Add(int64_t added, const std::string& place);
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

  // What a calibration sees and a log does not have.

  // How many records the observations are of; 0: not known.
  int64_t records = 0;
  // All finite values of the tensor. An entry that has it is of a tensor of the
  // float graph; one without, of a node that computes ranges.
  std::optional<ValueHistogram> histogram;
  // For each index into the last dimension, the least and the greatest value;
  // empty when that dimension is not the same in all observations, or too big.
  std::vector<float> channel_mins;
  std::vector<float> channel_maxs;
  // How the indices into the last dimension vary together, in the first
  // records; only of tensors that are the input of a layer.
  std::optional<ChannelMoments> moments;

  // Each adds one observation.
  void AddMin(float min, const Place& place);
  void AddMax(float max, const Place& place);
  void AddRange(float min, float max, const Place& place);

  // Appends the other's observations. What only one of the two has of records,
  // histogram, channels and moments would not be about both, and is dropped.
  void Merge(const RangeEntry& other);

 private:
  void AddValue(float value, const Place& place, std::vector<float>* values);
};

// Entries have at most this many channels.
inline constexpr size_t kMostChannels = 8192;

// (node, output).
using RangeKey = std::pair<std::string, int>;
using RangeKeyView = std::pair<std::string_view, int>;

class RangeTable {
 public:
  using Entries = std::map<RangeKey, RangeEntry>;

  // Returns them ascending by node, then output. An entry keeps its address
  // until the table is assigned to or destroyed.
  const Entries& entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }

  // Returns the entry of that output, or null.
  const RangeEntry* Find(std::string_view node, int output = 0) const;

  // Returns the entry of that output; an empty one is added when there is none.
  RangeEntry& FindOrAdd(std::string_view node, int output = 0);

  // Appends the other's observations to this table's, which is made from
  // nothing in particular then.
  void Merge(const RangeTable& other);

  // Returns a digest of all that a calibration made this table from; empty for
  // other tables.
  const std::string& made_from() const { return made_from_; }
  void set_made_from(std::string digest) { made_from_ = std::move(digest); }

 private:
  Entries entries_;
  std::string made_from_;
};

// Returns the contents of a RangeTable file. Equal tables give equal bytes.
// Fails for a table of more than 2 GB.
absl::StatusOr<std::string> SerializeRangeTable(const RangeTable& table);

// Reads the contents of a RangeTable file. Errors name `file`: not a
// RangeTable, of a newer version, cut short, or with contents that no writer
// makes.
absl::StatusOr<RangeTable> ParseRangeTable(std::string_view contents,
                                           const std::string& file);

// Does the same with a file, which is written atomically.
absl::Status WriteRangeTable(const RangeTable& table, const std::string& path);
absl::StatusOr<RangeTable> ReadRangeTable(const std::string& path);

// Reads several files and merges their tables, in this order.
absl::StatusOr<RangeTable> ReadRangeTables(
    const std::vector<std::string>& paths);

// Returns whether a file that starts with `head` is a RangeTable file; 32 bytes
// suffice.
bool StartsLikeRangeTable(std::string_view head);

// Returns the value at the lower tail: of the n ascending values the one at
// index round(n * percentile / 100), clamped to [0, n - 1]. Computed in float
// as TensorFlow's freeze_requantization_ranges does, so that the choice is the
// same. `percentile` is between 0 and 100. NaN when there are no values.
float LowerPercentile(std::vector<float> values, float percentile);

// Returns the value at the upper tail: index round(n * (1 - percentile / 100)),
// clamped.
float UpperPercentile(std::vector<float> values, float percentile);

}  // namespace requant

#endif  // REQUANT_RANGES_RANGE_TABLE_H_
