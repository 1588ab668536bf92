#ifndef REQUANT_RANGES_VALUE_HISTOGRAM_H_
#define REQUANT_RANGES_VALUE_HISTOGRAM_H_

// How often values of each size occurred in a tensor. The result depends on the
// values alone, not on the order or the portions they came in, so that the
// histograms of batches, threads and machines add up exactly.

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace requant {

// Bucket i covers [i * 2^exponent, (i + 1) * 2^exponent). The exponent is the
// smallest with which the values and zero, which every quantized range
// includes, lie within kMostBuckets consecutive buckets. Zeros, of which a Relu
// gives many, are counted apart, and so is anything of less than FLT_MIN, which
// some kernels take for zero and others do not.
class ValueHistogram {
 public:
  static constexpr int kMostBuckets = 4096;
  // With it a width and its reciprocal are normal floats. All floats fit into
  // buckets of width 2^117.
  static constexpr int kLeastExponent = -126;

  // Counts finite values, the least and the greatest of which the caller knows.
  void Add(absl::Span<const float> values, float min, float max);
  // Does the same for callers that do not know the range.
  void Add(absl::Span<const float> values);
  void Merge(const ValueHistogram& other);

  // Makes a histogram of what the accessors below gave. Anything else than they
  // can give is an error, or, if harmless, taken as it is.
  static absl::StatusOr<ValueHistogram> Restore(int64_t zeros, int exponent,
                                                int32_t first_bucket,
                                                std::vector<int64_t> counts);

  int64_t zeros() const { return zeros_; }
  int exponent() const { return exponent_; }
  int32_t first_bucket() const { return first_bucket_; }
  // Returns those of consecutive buckets, from the first that is not empty to
  // the last. While there are none, the two above are 0.
  const std::vector<int64_t>& counts() const { return counts_; }
  // Counts zeros and others.
  int64_t total() const;
  double width() const;
  // Returns the lower edge of counts()[i]; that of counts()[size] is the upper
  // edge of the last bucket.
  double Edge(int64_t i) const;

  bool operator==(const ValueHistogram& other) const;

 private:
  // Doubles the width of the buckets.
  void Coarsen();
  // Makes the buckets at least 2^exponent wide, and wide enough for those that
  // are there together with the numbers `first` to `last` of that width.
  // Returns first and last as they are then.
  std::pair<int32_t, int32_t> Fit(int exponent, int32_t first, int32_t last);
  // Adds to the buckets from number `first` on.
  void AddCounts(int32_t first, absl::Span<const int64_t> counts);

  int64_t zeros_ = 0;
  int exponent_ = 0;
  int32_t first_bucket_ = 0;
  std::vector<int64_t> counts_;
};

}  // namespace requant

#endif  // REQUANT_RANGES_VALUE_HISTOGRAM_H_
