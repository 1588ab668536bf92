#ifndef REQUANT_RANGES_VALUE_HISTOGRAM_H_
#define REQUANT_RANGES_VALUE_HISTOGRAM_H_

// Counts how often values of each size occur in a tensor. The result depends
// only on the values, not on their order or grouping, so that the histograms of
// batches, threads and machines add up exactly.

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace requant {

// Bucket i covers [i * 2^exponent, (i + 1) * 2^exponent). The exponent is the
// smallest for which the values and zero, which every quantized range includes,
// lie within kMostBuckets consecutive buckets. Zeros, which are common after a
// Relu, are counted separately, and so are magnitudes below FLT_MIN, which some
// kernels treat as zero and others do not.
class ValueHistogram {
 public:
  static constexpr int kMostBuckets = 4096;
  // With it a width and its reciprocal are normal floats. All floats fit into
  // buckets of width 2^117.
  static constexpr int kLeastExponent = -126;

  // Counts finite values, whose minimum and maximum the caller knows.
  void Add(absl::Span<const float> values, float min, float max);
  // Does the same for callers that do not know the range.
  void Add(absl::Span<const float> values);
  void Merge(const ValueHistogram& other);

  // Restores a histogram from the results of the accessors below. Other values
  // are an error or, if harmless, accepted.
  static absl::StatusOr<ValueHistogram> Restore(int64_t zeros, int exponent,
                                                int32_t first_bucket,
                                                std::vector<int64_t> counts);

  int64_t zeros() const { return zeros_; }
  int exponent() const { return exponent_; }
  int32_t first_bucket() const { return first_bucket_; }
  // Returns the counts of consecutive buckets, from the first nonempty one to
  // the last. If there are none, exponent() and first_bucket() are 0.
  const std::vector<int64_t>& counts() const { return counts_; }
  // Returns the number of all values, including zeros.
  int64_t total() const;
  double width() const;
  // Returns the lower edge of counts()[i]; for i = counts().size(), it is the
  // upper edge of the last bucket.
  double Edge(int64_t i) const;

  bool operator==(const ValueHistogram& other) const;

 private:
  // Doubles the width of the buckets.
  void Coarsen();
  // Makes the buckets at least 2^exponent wide, and wide enough for the
  // existing ones together with the numbers `first` to `last` of that width.
  // Returns `first` and `last` converted to the new width.
  std::pair<int32_t, int32_t> Fit(int exponent, int32_t first, int32_t last);
  // Adds counts to the buckets starting at number `first`.
  void AddCounts(int32_t first, absl::Span<const int64_t> counts);

  int64_t zeros_ = 0;
  int exponent_ = 0;
  int32_t first_bucket_ = 0;
  std::vector<int64_t> counts_;
};

}  // namespace requant

#endif  // REQUANT_RANGES_VALUE_HISTOGRAM_H_
