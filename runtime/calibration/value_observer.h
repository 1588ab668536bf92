#ifndef REQUANT_RUNTIME_CALIBRATION_VALUE_OBSERVER_H_
#define REQUANT_RUNTIME_CALIBRATION_VALUE_OBSERVER_H_

// Collects what a calibration keeps of a tensor's values, batch by batch.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "ranges/channel_moments.h"
#include "ranges/range_table.h"

namespace requant {

// The values of one batch of a tensor.
struct ObservedBatch {
  absl::Span<const float> values;
  // The size of the last dimension; 0 if the tensor has at most one.
  int64_t channels = 0;
  // Counted from 0 over all data.
  int64_t first_record = 0;
  int64_t records = 0;
};

struct MomentOptions {
  // The number of records, from the first on, that moments cover; 0 for none.
  int64_t records = 0;
  int threads = 1;
};

class ValueObserver {
 public:
  // `tensor` is named as the place of values that are not finite.
  explicit ValueObserver(std::string tensor, const MomentOptions& moments = {})
      : tensor_(std::move(tensor)),
        moment_records_(moments.records),
        moments_(moments.threads) {}

  // Adds a batch. Batches come in the data's order; empty ones are ignored.
  void Add(const ObservedBatch& batch);

  // Returns what was observed; nothing may be added after that.
  RangeEntry Take();

 private:
  void FindExtremes(const ObservedBatch& batch);
  void AddNotFinite(const ObservedBatch& batch);
  void MergeChannels(int64_t channels);
  // Must be called before the batch's records are counted.
  void AddMoments(const ObservedBatch& batch);

  std::string tensor_;
  RangeEntry entry_;
  bool has_channels_ = true;
  int64_t moment_records_;
  ChannelMomentsBuilder moments_;
  // The extremes of every `lanes`-th value of the last batch.
  std::vector<float> lane_mins_;
  std::vector<float> lane_maxs_;
  bool has_nan_ = false;
};

// Observes what a Min, a Max or a RequantizationRange computed for a batch,
// just as the log of its Print node is read: the minimum is the least of
// several values, the maximum the greatest. Values that are not finite are
// recorded with `place`.
void ObserveMin(absl::Span<const float> values, const std::string& place,
                RangeEntry* entry);
void ObserveMax(absl::Span<const float> values, const std::string& place,
                RangeEntry* entry);
void ObserveRange(absl::Span<const float> mins, absl::Span<const float> maxs,
                  const std::string& place, RangeEntry* entry);

}  // namespace requant

#endif  // REQUANT_RUNTIME_CALIBRATION_VALUE_OBSERVER_H_
