#include "runtime/statistics/auc.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

namespace requant {
namespace {

// The number of records sorted at a time, which is large enough to make the
// cost of merging them into all bins small per record.
constexpr size_t kMaxWaiting = size_t{1} << 18;

// Maps floats to integers in the same order, and NaNs to the range's ends.
uint32_t OrderedKey(float score, bool is_class_1) {
  if (std::isnan(score)) {
    return is_class_1 ? 0 : std::numeric_limits<uint32_t>::max();
  }
  // -0 and 0 are equal, but their bits are not.
  if (score == 0) score = 0;
  uint32_t bits;
  std::memcpy(&bits, &score, sizeof(bits));
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

// Sorts numbers of 33 bits in three passes of 11 bits, which takes a third of
// the time of a comparison sort.
void RadixSort(std::vector<uint64_t>* numbers) {
  constexpr int kBits = 11;
  constexpr size_t kDigits = size_t{1} << kBits;
  std::vector<uint64_t> sorted(numbers->size());
  for (int shift = 0; shift < 33; shift += kBits) {
    const auto digit = [shift](uint64_t number) {
      return number >> shift & (kDigits - 1);
    };
    std::array<size_t, kDigits + 1> begin = {};
    for (const uint64_t number : *numbers) ++begin[digit(number) + 1];
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    for (const uint64_t number : *numbers) {
      sorted[begin[digit(number)]++] = number;
    }
    numbers->swap(sorted);
  }
}

}  // namespace

AucAccumulator::AucAccumulator(size_t capacity)
    : capacity_(std::max<size_t>(capacity, 1)) {}

void AucAccumulator::Add(float score, bool is_class_1) {
  if (waiting_.size() >= kMaxWaiting) CountWaiting();
  waiting_.push_back(uint64_t{OrderedKey(score, is_class_1)} << 1 |
                     uint64_t{is_class_1});
}

void AucAccumulator::CountWaiting() const {
  if (waiting_.empty()) return;
  RadixSort(&waiting_);
  std::vector<Bin> bins;
  for (const uint64_t record : waiting_) {
    const uint32_t key = static_cast<uint32_t>(record >> 1) >> shift_;
    if (bins.empty() || bins.back().key != key) bins.push_back({key, 0, 0});
    ++((record & 1) != 0 ? bins.back().class_1 : bins.back().class_0);
  }
  waiting_.clear();
  MergeBins(bins);
}

// `bins` are sorted, have keys for the current shift, and may repeat keys.
void AucAccumulator::MergeBins(const std::vector<Bin>& bins) const {
  std::vector<Bin> merged;
  merged.reserve(bins_.size() + bins.size());
  const auto append = [&merged](const Bin& bin) {
    if (merged.empty() || merged.back().key != bin.key) {
      merged.push_back(bin);
      return;
    }
    merged.back().class_0 += bin.class_0;
    merged.back().class_1 += bin.class_1;
  };
  auto own = bins_.begin();
  for (const Bin& bin : bins) {
    for (; own != bins_.end() && own->key <= bin.key; ++own) append(*own);
    append(bin);
  }
  for (; own != bins_.end(); ++own) append(*own);
  bins_ = std::move(merged);
  while (bins_.size() > capacity_) Coarsen();
}

void AucAccumulator::Coarsen() const {
  ++shift_;
  size_t size = 0;
  for (Bin bin : bins_) {
    bin.key >>= 1;
    if (size != 0 && bins_[size - 1].key == bin.key) {
      bins_[size - 1].class_0 += bin.class_0;
      bins_[size - 1].class_1 += bin.class_1;
    } else {
      bins_[size++] = bin;
    }
  }
  bins_.resize(size);
}

std::optional<Auc> AucAccumulator::Result() const {
  CountWaiting();
  // Pairs are counted in halves, as doubles. Beyond 2^53 of them, the rounding
  // is far below the 16 digits of the result.
  double class_0_below = 0;
  double class_1 = 0;
  long double right_pairs = 0;
  long double tied_pairs = 0;
  for (const Bin& bin : bins_) {
    const long double ones = static_cast<long double>(bin.class_1);
    right_pairs += ones * class_0_below;
    tied_pairs += ones * static_cast<long double>(bin.class_0);
    class_0_below += static_cast<double>(bin.class_0);
    class_1 += static_cast<double>(bin.class_1);
  }
  if (class_0_below == 0 || class_1 == 0) return std::nullopt;
  const long double pairs = static_cast<long double>(class_0_below) * class_1;
  Auc auc;
  auc.value = static_cast<double>((right_pairs + tied_pairs / 2) / pairs);
  if (shift_ > 0) auc.max_error = static_cast<double>(tied_pairs / 2 / pairs);
  return auc;
}

}  // namespace requant
