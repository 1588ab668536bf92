#ifndef REQUANT_RUNTIME_STATISTICS_AUC_H_
#define REQUANT_RUNTIME_STATISTICS_AUC_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace requant {

struct Auc {
  // The chance that a random record of class 1 is scored above a random one of
  // class 0; equal scores count half.
  double value = 0;
  // The largest possible error of `value`; 0 means that `value` is exact.
  double max_error = 0;
};

// Computes the area under a stream's ROC curve, in bounded memory.
//
// Scores are counted per distinct value, so the result is exact while there are
// at most `capacity` values. If there are more, 2^k neighboring float values
// share a bin, with the smallest k that makes the bins fit. The records in one
// bin are treated as ties, which is wrong by at most half of its pairs;
// max_error sums that over the bins. With the default capacity (some 90 MB at
// most) it stays below 1e-6 for any number of scores spread over [0, 1].
//
// The result does not depend on the records' order. Not thread-safe, and
// neither is Result().
class AucAccumulator {
 public:
  static constexpr size_t kDefaultCapacity = size_t{1} << 20;

  explicit AucAccumulator(size_t capacity = kDefaultCapacity);

  // Adds a record. A NaN gets the worst possible rank: below every score if the
  // record is of class 1, above every score if it is not.
  void Add(float score, bool is_class_1);

  // Returns nothing unless both classes occurred.
  std::optional<Auc> Result() const;

 private:
  struct Bin {
    uint32_t key = 0;
    int64_t class_0 = 0;
    int64_t class_1 = 0;
  };

  // Counts the waiting records. Logically const because Result() needs it.
  void CountWaiting() const;
  void MergeBins(const std::vector<Bin>& bins) const;
  void Coarsen() const;

  size_t capacity_;
  // Scores that are not yet counted, each as its key shifted left by one, with
  // the class in the lowest bit.
  mutable std::vector<uint64_t> waiting_;
  // The bins, by ascending key.
  mutable std::vector<Bin> bins_;
  // A bin's key is a score's key without this many of its lowest bits.
  mutable int shift_ = 0;
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_STATISTICS_AUC_H_
