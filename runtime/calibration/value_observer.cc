#include "runtime/calibration/value_observer.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace requant {
namespace {

// If there are few channels, several rows are processed at a time, because
// loops over fewer values are slow.
constexpr int64_t kFewestLanes = 64;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Lowers `mins` and raises `maxs` to cover one row of values, skipping NaNs.
// Returns whether there was one.
int AddRow(const float* __restrict values, int64_t size, float* __restrict mins,
           float* __restrict maxs) {
  int has_nan = 0;
  for (int64_t i = 0; i < size; ++i) {
    const float value = values[i];
    mins[i] = value < mins[i] ? value : mins[i];
    maxs[i] = value > maxs[i] ? value : maxs[i];
    has_nan |= value != value;
  }
  return has_nan;
}

// Returns whether all values are finite; if not, counts one observation without
// a range.
bool AllFinite(absl::Span<const float> values, const std::string& place,
               RangeEntry* entry) {
  if (std::all_of(values.begin(), values.end(),
                  [](float value) { return std::isfinite(value); })) {
    return true;
  }
  ++entry->count;
  entry->not_finite.Add(1, place);
  return false;
}

}  // namespace

RangeEntry ValueObserver::Take() {
  entry_.moments = moments_.Build();
  return std::move(entry_);
}

void ValueObserver::Add(const ObservedBatch& batch) {
  AddMoments(batch);
  entry_.records += batch.records;
  if (batch.values.empty()) return;
  if (!entry_.histogram.has_value()) entry_.histogram.emplace();
  FindExtremes(batch);
  const float min = *std::min_element(lane_mins_.begin(), lane_mins_.end());
  const float max = *std::max_element(lane_maxs_.begin(), lane_maxs_.end());
  if (has_nan_ || !std::isfinite(min) || !std::isfinite(max)) {
    return AddNotFinite(batch);
  }
  MergeChannels(batch.channels);
  entry_.AddRange(min, max, {});
  entry_.histogram->Add(batch.values, min, max);
}

void ValueObserver::FindExtremes(const ObservedBatch& batch) {
  const int64_t channels = std::max<int64_t>(1, batch.channels);
  const int64_t lanes =
      channels * std::max<int64_t>(1, (kFewestLanes + channels - 1) / channels);
  lane_mins_.assign(lanes, kInfinity);
  lane_maxs_.assign(lanes, -kInfinity);
  const int64_t size = batch.values.size();
  int has_nan = 0;
  for (int64_t start = 0; start < size; start += lanes) {
    has_nan |=
        AddRow(batch.values.data() + start, std::min(lanes, size - start),
               lane_mins_.data(), lane_maxs_.data());
  }
  has_nan_ = has_nan != 0;
  // Lanes that got no values are dropped.
  if (size < lanes) {
    lane_mins_.resize(std::max(size, channels));
    lane_maxs_.resize(lane_mins_.size());
  }
}

void ValueObserver::MergeChannels(int64_t channels) {
  const bool first = entry_.count == 0;
  if (channels < 1 || channels > kMostChannels ||
      (!first && entry_.channel_mins.size() != channels)) {
    has_channels_ = false;
  }
  if (!has_channels_) {
    entry_.channel_mins.clear();
    entry_.channel_maxs.clear();
    return;
  }
  if (first) {
    entry_.channel_mins.assign(channels, kInfinity);
    entry_.channel_maxs.assign(channels, -kInfinity);
  }
  for (size_t lane = 0; lane < lane_mins_.size(); ++lane) {
    float& min = entry_.channel_mins[lane % channels];
    float& max = entry_.channel_maxs[lane % channels];
    min = std::min(min, lane_mins_[lane]);
    max = std::max(max, lane_maxs_[lane]);
  }
}

void ValueObserver::AddMoments(const ObservedBatch& batch) {
  const int64_t records =
      std::min(batch.records, moment_records_ - entry_.records);
  if (records <= 0 || batch.values.empty()) return;
  const int64_t rows =
      batch.values.size() / std::max<int64_t>(1, batch.channels);
  moments_.Add(
      batch.values.subspan(0, rows * records / batch.records * batch.channels),
      batch.channels);
}

void ValueObserver::AddNotFinite(const ObservedBatch& batch) {
  const int64_t per_record = std::max<int64_t>(
      1, batch.values.size() / std::max<int64_t>(1, batch.records));
  std::vector<float> finite;
  int64_t first = -1;
  for (size_t i = 0; i < batch.values.size(); ++i) {
    if (std::isfinite(batch.values[i])) {
      finite.push_back(batch.values[i]);
    } else if (first < 0) {
      first = batch.first_record + static_cast<int64_t>(i) / per_record;
    }
  }
  entry_.not_finite.Add(batch.values.size() - finite.size(),
                        absl::StrCat("tensor ", tensor_, " record ", first));
  has_channels_ = false;
  entry_.channel_mins.clear();
  entry_.channel_maxs.clear();
  if (finite.empty()) {
    ++entry_.count;
    return;
  }
  const auto [min, max] = std::minmax_element(finite.begin(), finite.end());
  entry_.AddRange(*min, *max, {});
  entry_.histogram->Add(finite, *min, *max);
}

void ObserveMin(absl::Span<const float> values, const std::string& place,
                RangeEntry* entry) {
  if (values.empty() || !AllFinite(values, place, entry)) return;
  entry->AddMin(*std::min_element(values.begin(), values.end()), {});
}

void ObserveMax(absl::Span<const float> values, const std::string& place,
                RangeEntry* entry) {
  if (values.empty() || !AllFinite(values, place, entry)) return;
  entry->AddMax(*std::max_element(values.begin(), values.end()), {});
}

void ObserveRange(absl::Span<const float> mins, absl::Span<const float> maxs,
                  const std::string& place, RangeEntry* entry) {
  if (mins.empty() || maxs.empty()) return;
  RangeEntry observed;
  ObserveMin(mins, place, &observed);
  ObserveMax(maxs, place, &observed);
  observed.count = 1;
  if (!observed.mins.empty() && !observed.maxs.empty() &&
      observed.mins[0] > observed.maxs[0]) {
    observed.inverted.Add(1, place);
  }
  entry->Merge(observed);
}

}  // namespace requant
