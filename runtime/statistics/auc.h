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
  // The exact figure is within this of `value`; 0 means that `value` is exact.
  double max_error = 0;
};

// The area under the ROC curve of a stream of any length, in flat memory.
//
// Scores are counted per distinct value, so the figure is exact while there are
// at most `capacity` of them. When there are more, neighbouring float values
// share a bin, 2^k of them with the smallest k that makes the bins fit; the
// records in one bin are taken as tied, which is wrong by at most half of its
// pairs, and max_error is the sum of that over the bins, as counted. With the
// default capacity (some 90 MB at most) it stays below 1e-6 for any number of
// scores spread over [0, 1].
//
// The result depends on the records alone, not on their order. Not thread-safe,
// nor is Result().
class AucAccumulator {
 public:
  static constexpr size_t kDefaultCapacity = size_t{1} << 20;

  explicit AucAccumulator(size_t capacity = kDefaultCapacity);

  // Adds a record. A NaN is ranked as wrong as can be: below every score when
  // the record is of class 1, above every score when it is not.
  void Add(float score, bool is_class_1);

  // Returns nothing unless both classes occurred.
  std::optional<Auc> Result() const;

 private:
  struct Bin {
    uint32_t key = 0;
    int64_t class_0 = 0;
    int64_t class_1 = 0;
  };

  // Counts the waiting records. Logically const: Result() needs it.
  void CountWaiting() const;
  void MergeBins(const std::vector<Bin>& bins) const;
  void Coarsen() const;

  size_t capacity_;
  // Scores that are not yet counted, each as its key, shifted by one, and the
  // class in the lowest bit.
  mutable std::vector<uint64_t> waiting_;
  // The bins by ascending key.
  mutable std::vector<Bin> bins_;
  // A bin's key is a score's key without this many of its lowest bits.
  mutable int shift_ = 0;
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_STATISTICS_AUC_H_
