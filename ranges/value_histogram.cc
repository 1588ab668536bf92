#include "ranges/value_histogram.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "absl/status/status.h"

namespace requant {
namespace {

// Limits the counts of a file, so that thousands of files add up safely.
constexpr int64_t kMostValues = int64_t{1} << 52;

// The buckets of this many values are computed together, because the compiler
// vectorizes loops of fixed length.
constexpr size_t kBlock = 512;

// In a single table, equal neighbors would wait for each other's increment.
constexpr size_t kTables = 4;

// A table has 32-bit counts.
constexpr size_t kMostPerPass = size_t{1} << 31;

// All floats lie between this and its negative.
const double kFloatLimit = std::ldexp(1.0, 128);
constexpr int kGreatestExponent = 117;

bool CountsAsZero(float value) { return std::fabs(value) < FLT_MIN; }

int32_t Bucket(double value, int exponent) {
  return static_cast<int32_t>(std::floor(std::ldexp(value, -exponent)));
}

// Returns whether the buckets `first` to `last` and zero's are few enough.
bool FitsBuckets(int32_t first, int32_t last) {
  return std::max(last, 0) - std::min(first, 0) < ValueHistogram::kMostBuckets;
}

// Returns the smallest exponent for values from `low` to `high` and zero.
int ExponentFor(float low, float high) {
  const double span = static_cast<double>(high) - low;
  int exponent = std::max(ValueHistogram::kLeastExponent,
                          static_cast<int>(std::ilogb(span)) - 13);
  while (!FitsBuckets(Bucket(low, exponent), Bucket(high, exponent))) {
    ++exponent;
  }
  return exponent;
}

// Finds the slot of each value of a block: its bucket's number minus `first`,
// or `zero_slot`.
void FindSlots(const float* values, float scale, int32_t first,
               int32_t zero_slot, int32_t* slots) {
  for (size_t i = 0; i < kBlock; ++i) {
    const float value = values[i];
    const float scaled = value * scale;
    // Truncation gives one too many for negative numbers between two integers.
    // A negative one with magnitude below FLT_MIN may have become zero.
    int32_t bucket = static_cast<int32_t>(scaled);
    const int32_t is_between =
        (scaled < static_cast<float>(bucket)) | ((value < 0) & (bucket == 0));
    bucket -= is_between;
    const int32_t is_zero = std::fabs(value) < FLT_MIN;
    slots[i] = is_zero ? zero_slot : bucket - first;
  }
}

// Puts neighbors into different tables, each with `slots` counts.
void CountSlots(const int32_t* __restrict slot_of, size_t size,
                uint32_t* __restrict tables, size_t slots) {
  static_assert(kTables == 4, "the loop below is written for four tables");
  uint32_t* const second = tables + slots;
  uint32_t* const third = second + slots;
  uint32_t* const fourth = third + slots;
  size_t i = 0;
  for (; i + kTables <= size; i += kTables) {
    ++tables[slot_of[i]];
    ++second[slot_of[i + 1]];
    ++third[slot_of[i + 2]];
    ++fourth[slot_of[i + 3]];
  }
  for (; i < size; ++i) ++tables[slot_of[i]];
}

}  // namespace

void ValueHistogram::Add(absl::Span<const float> values) {
  float min = 0, max = 0;
  for (float value : values) {
    min = std::min(min, value);
    max = std::max(max, value);
  }
  Add(values, min, max);
}

void ValueHistogram::Add(absl::Span<const float> values, float min, float max) {
  for (; values.size() > kMostPerPass; values.remove_prefix(kMostPerPass)) {
    Add(values.subspan(0, kMostPerPass), min, max);
  }
  const float low = CountsAsZero(min) ? 0 : std::min(min, 0.0f);
  const float high = CountsAsZero(max) ? 0 : std::max(max, 0.0f);
  if (low == high) {
    zeros_ += values.size();
    return;
  }
  const int needed = ExponentFor(low, high);
  const auto [first, last] =
      Fit(needed, Bucket(low, needed), Bucket(high, needed));
  const size_t zero_slot = last - first + 1;
  const size_t slots = zero_slot + 1;
  std::vector<uint32_t> tables(kTables * slots);
  const float scale = static_cast<float>(std::ldexp(1.0, -exponent_));
  int32_t slot_of[kBlock];
  float rest[kBlock] = {};
  for (size_t start = 0; start < values.size(); start += kBlock) {
    const size_t size = std::min(kBlock, values.size() - start);
    const float* block = values.data() + start;
    if (size < kBlock) {
      std::memcpy(rest, block, size * sizeof(float));
      block = rest;
    }
    FindSlots(block, scale, first, zero_slot, slot_of);
    CountSlots(slot_of, size, tables.data(), slots);
  }
  std::vector<int64_t> counts(slots);
  for (size_t i = 0; i < tables.size(); ++i) counts[i % slots] += tables[i];
  zeros_ += counts[zero_slot];
  AddCounts(first, absl::MakeSpan(counts).subspan(0, zero_slot));
}

void ValueHistogram::Merge(const ValueHistogram& other) {
  if (&other == this) return Merge(ValueHistogram(other));
  zeros_ += other.zeros_;
  if (other.counts_.empty()) return;
  ValueHistogram coarser = other;
  const int32_t first = other.first_bucket_;
  Fit(other.exponent_, first,
      first + static_cast<int32_t>(other.counts_.size()) - 1);
  while (coarser.exponent_ < exponent_) coarser.Coarsen();
  AddCounts(coarser.first_bucket_, coarser.counts_);
}

absl::StatusOr<ValueHistogram> ValueHistogram::Restore(
    int64_t zeros, int exponent, int32_t first_bucket,
    std::vector<int64_t> counts) {
  const absl::Status error = absl::DataLossError("no histogram is like that");
  if (zeros < 0 || zeros > kMostValues || counts.size() > kMostBuckets ||
      exponent < kLeastExponent || exponent > kGreatestExponent ||
      first_bucket < -kMostBuckets || first_bucket >= kMostBuckets) {
    return error;
  }
  int64_t total = zeros;
  for (int64_t count : counts) {
    if (count < 0 || count > kMostValues) return error;
    total += count;
  }
  const int32_t last = first_bucket + static_cast<int32_t>(counts.size()) - 1;
  if (total > kMostValues ||
      (counts.empty() ? exponent != 0 || first_bucket != 0
                      : counts.front() == 0 || counts.back() == 0 ||
                            !FitsBuckets(first_bucket, last) ||
                            std::ldexp(first_bucket, exponent) < -kFloatLimit ||
                            std::ldexp(last + 1, exponent) > kFloatLimit)) {
    return error;
  }
  ValueHistogram histogram;
  histogram.zeros_ = zeros;
  histogram.exponent_ = exponent;
  histogram.first_bucket_ = first_bucket;
  histogram.counts_ = std::move(counts);
  return histogram;
}

int64_t ValueHistogram::total() const {
  int64_t total = zeros_;
  for (int64_t count : counts_) total += count;
  return total;
}

double ValueHistogram::width() const { return std::ldexp(1.0, exponent_); }

double ValueHistogram::Edge(int64_t i) const {
  return std::ldexp(static_cast<double>(first_bucket_ + i), exponent_);
}

bool ValueHistogram::operator==(const ValueHistogram& other) const {
  return zeros_ == other.zeros_ && exponent_ == other.exponent_ &&
         first_bucket_ == other.first_bucket_ && counts_ == other.counts_;
}

void ValueHistogram::Coarsen() {
  const int32_t first = first_bucket_ >> 1;
  const int32_t last =
      (first_bucket_ + static_cast<int32_t>(counts_.size()) - 1) >> 1;
  std::vector<int64_t> wider(last - first + 1);
  for (size_t i = 0; i < counts_.size(); ++i) {
    const int32_t bucket = first_bucket_ + static_cast<int32_t>(i);
    wider[(bucket >> 1) - first] += counts_[i];
  }
  ++exponent_;
  first_bucket_ = first;
  counts_ = std::move(wider);
}

std::pair<int32_t, int32_t> ValueHistogram::Fit(int exponent, int32_t first,
                                                int32_t last) {
  if (counts_.empty()) {
    exponent_ = exponent;
    return {first, last};
  }
  while (exponent_ < exponent) Coarsen();
  for (; exponent < exponent_; ++exponent) {
    first >>= 1;
    last >>= 1;
  }
  const auto own_last = [this] {
    return first_bucket_ + static_cast<int32_t>(counts_.size()) - 1;
  };
  while (!FitsBuckets(std::min(first, first_bucket_),
                      std::max(last, own_last()))) {
    Coarsen();
    first >>= 1;
    last >>= 1;
  }
  return {first, last};
}

void ValueHistogram::AddCounts(int32_t first,
                               absl::Span<const int64_t> counts) {
  while (!counts.empty() && counts.front() == 0) {
    counts.remove_prefix(1);
    ++first;
  }
  while (!counts.empty() && counts.back() == 0) counts.remove_suffix(1);
  if (counts.empty()) return;
  if (counts_.empty()) first_bucket_ = first;
  if (first < first_bucket_) {
    counts_.insert(counts_.begin(), first_bucket_ - first, 0);
    first_bucket_ = first;
  }
  const size_t offset = first - first_bucket_;
  counts_.resize(std::max(counts_.size(), offset + counts.size()));
  for (size_t i = 0; i < counts.size(); ++i) counts_[offset + i] += counts[i];
}

}  // namespace requant
