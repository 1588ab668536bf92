#ifndef REQUANT_RANGES_RANGE_TABLE_H_
#define REQUANT_RANGES_RANGE_TABLE_H_

// The only type for observed ranges: a parsed log and a calibration run both
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
  // "file:line" of the first one, or empty if there is none.
  std::string first_place;

  void Add(const Place& place);
  // Adds `added` observations, of which the first is at `place`.
  void Add(int64_t added, const std::string& place);
  void Merge(const RangeFault& other);
};

// Everything observed for one output of one node.
struct RangeEntry {
  // The number of observations (lines of a log or batches of a run).
  int64_t count = 0;
  // The finite values, in the order observed. Observations may have only one of
  // the two, so mins[i] and maxs[i] need not belong together.
  std::vector<float> mins;
  std::vector<float> maxs;
  // Values that were nan or infinite; they are not in mins and maxs.
  RangeFault not_finite;
  // Observations whose min was greater than their max; both values are kept.
  RangeFault inverted;

  // Data that only a calibration gives, not a log.

  // The number of records in the observations, or 0 if unknown.
  int64_t records = 0;
  // All finite values of the tensor. It is set for a tensor of the float graph
  // and unset for a node that computes ranges.
  std::optional<ValueHistogram> histogram;
  // The least and greatest value for each index into the last dimension; empty
  // if that dimension is too large or not the same in all observations.
  std::vector<float> channel_mins;
  std::vector<float> channel_maxs;
  // How the indices into the last dimension vary together in the first records;
  // only for tensors that are the input of a layer.
  std::optional<ChannelMoments> moments;

  // Each of these adds one observation.
  void AddMin(float min, const Place& place);
  void AddMax(float max, const Place& place);
  void AddRange(float min, float max, const Place& place);

  // Appends the other's observations. Drops records, histogram, channels and
  // moments that only one of the two has, as they would not describe both.
  void Merge(const RangeEntry& other);

 private:
  void AddValue(float value, const Place& place, std::vector<float>* values);
};

// Entries have at most this many channels.
inline constexpr size_t kMostChannels = 8192;

// The node's name and its output.
using RangeKey = std::pair<std::string, int>;
using RangeKeyView = std::pair<std::string_view, int>;

class RangeTable {
 public:
  using Entries = std::map<RangeKey, RangeEntry>;

  // Returns the entries sorted by node, then output. An entry keeps its address
  // until the table is assigned to or destroyed.
  const Entries& entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }

  // Returns the entry of that output, or null.
  const RangeEntry* Find(std::string_view node, int output = 0) const;

  // Returns the entry of that output, adding an empty one if there is none.
  RangeEntry& FindOrAdd(std::string_view node, int output = 0);

  // Appends the other's observations to this table's and clears made_from().
  void Merge(const RangeTable& other);

  // Returns a digest of everything from which a calibration made this table, or
  // "" for other tables.
  const std::string& made_from() const { return made_from_; }
  void set_made_from(std::string digest) { made_from_ = std::move(digest); }

 private:
  Entries entries_;
  std::string made_from_;
};

// Returns the contents of a RangeTable file. Equal tables give equal bytes.
// Fails if the table exceeds 2 GB.
absl::StatusOr<std::string> SerializeRangeTable(const RangeTable& table);

// Parses the contents of a RangeTable file. Errors name `file`: it is not a
// RangeTable, has a newer version, is truncated, or has contents that no writer
// produces.
absl::StatusOr<RangeTable> ParseRangeTable(std::string_view contents,
                                           const std::string& file);

// Do the same with a file, which is written atomically.
absl::Status WriteRangeTable(const RangeTable& table, const std::string& path);
absl::StatusOr<RangeTable> ReadRangeTable(const std::string& path);

// Reads several files and merges their tables in this order.
absl::StatusOr<RangeTable> ReadRangeTables(
    const std::vector<std::string>& paths);

// Returns whether a file that starts with `head` is a RangeTable file; 32 bytes
// are enough.
bool StartsLikeRangeTable(std::string_view head);

// Returns the value at the lower tail: of the n sorted values the one at index
// round(n * percentile / 100), clamped to [0, n - 1]. This is computed in
// float, like TensorFlow's freeze_requantization_ranges, so that the choice is
// the same. `percentile` is from 0 to 100. Returns NaN if there are no values.
float LowerPercentile(std::vector<float> values, float percentile);

// Returns the value at the upper tail, at the clamped index round(n * (1 -
// percentile / 100)).
float UpperPercentile(std::vector<float> values, float percentile);

}  // namespace requant

#endif  // REQUANT_RANGES_RANGE_TABLE_H_
