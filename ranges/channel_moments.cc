#include "ranges/channel_moments.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <thread>
#include <utility>

#include "absl/status/status.h"

namespace requant {
namespace {

// With this limit, sums over thousands of files do not overflow.
constexpr int64_t kMostRows = int64_t{1} << 52;

// Products are summed in float over this many rows.
constexpr int64_t kBlockRows = 256;

// With fewer tiles the start-up time of threads matters.
constexpr int64_t kFewestTilesPerThread = 256;

int64_t TriangleSize(int64_t channels) { return channels * (channels + 1) / 2; }

int64_t PanelCount(int64_t channels) {
  return (channels + kMomentPanel - 1) / kMomentPanel;
}

bool IsUsable(absl::Span<const float> row) {
  int unusable = 0;
  for (float value : row) unusable |= !(std::fabs(value) <= kMostMomentValue);
  return unusable == 0;
}

// No mean of squares of values up to kMostMomentValue exceeds this, whatever
// the rounding.
constexpr double kMostSquare = 1.01 * kMostMomentValue * kMostMomentValue;

std::vector<double> MeanOf(const std::vector<float>& rows, int64_t channels) {
  std::vector<double> mean(channels);
  const int64_t count = rows.size() / channels;
  for (int64_t row = 0; row < count; ++row) {
    const float* values = rows.data() + row * channels;
    for (int64_t i = 0; i < channels; ++i) mean[i] += values[i];
  }
  for (double& sum : mean) sum /= count;
  return mean;
}

// Computes the differences of all rows from `centre`, in panels
// (moment_kernel.h), of which the last is padded with zeros.
void FillPanels(const std::vector<float>& rows,
                const std::vector<float>& centre,
                std::vector<MomentRow>* panels) {
  const int64_t channels = centre.size();
  const int64_t count = rows.size() / channels;
  panels->resize(PanelCount(channels) * count);
  MomentRow* next = panels->data();
  for (int64_t first = 0; first < channels; first += kMomentPanel) {
    const int64_t width = std::min(kMomentPanel, channels - first);
    for (int64_t row = 0; row < count; ++row, ++next) {
      const float* values = rows.data() + row * channels + first;
      *next = {};
      for (int64_t i = 0; i < width; ++i) {
        next->values[i] = values[i] - centre[first + i];
      }
    }
  }
}

}  // namespace

absl::StatusOr<ChannelMoments> ChannelMoments::Restore(
    int64_t rows, std::vector<double> mean, std::vector<float> triangle) {
  const absl::Status error = absl::DataLossError("no moments are like that");
  const int64_t channels = mean.size();
  if (rows < 1 || rows > kMostRows || channels < 1 ||
      channels > kMostMomentChannels ||
      triangle.size() != TriangleSize(channels)) {
    return error;
  }
  for (int64_t i = 0; i < channels; ++i) {
    const double variance = triangle[TriangleSize(i) + i];
    // This also rejects NaN.
    if (!(variance >= 0 && mean[i] * mean[i] + variance <= kMostSquare)) {
      return error;
    }
  }
  for (float value : triangle) {
    if (!(std::fabs(value) <= kMostSquare)) return error;
  }
  ChannelMoments moments;
  moments.rows_ = rows;
  moments.mean_ = std::move(mean);
  moments.triangle_ = std::move(triangle);
  return moments;
}

std::optional<ChannelMoments> ChannelMoments::Of(absl::Span<const float> values,
                                                 int64_t channels) {
  ChannelMomentsBuilder builder;
  builder.Add(values, channels);
  return builder.Build();
}

void ChannelMoments::Merge(const ChannelMoments& other) {
  if (other.rows_ == 0) return;
  if (rows_ == 0) {
    *this = other;
    return;
  }
  const double rows = static_cast<double>(rows_) + other.rows_;
  const double weight = rows_ / rows, other_weight = other.rows_ / rows;
  std::vector<double> distance(channels());
  for (int64_t i = 0; i < channels(); ++i) {
    distance[i] = other.mean_[i] - mean_[i];
  }
  size_t next = 0;
  for (int64_t i = 0; i < channels(); ++i) {
    const double scaled = weight * other_weight * distance[i];
    for (int64_t j = 0; j <= i; ++j, ++next) {
      triangle_[next] = static_cast<float>(
          (weight * triangle_[next] + other_weight * other.triangle_[next]) +
          scaled * distance[j]);
    }
  }
  for (int64_t i = 0; i < channels(); ++i) {
    mean_[i] = weight * mean_[i] + other_weight * other.mean_[i];
  }
  rows_ += other.rows_;
}

bool ChannelMoments::operator==(const ChannelMoments& other) const {
  return rows_ == other.rows_ && mean_ == other.mean_ &&
         triangle_ == other.triangle_;
}

std::vector<MomentKernel> MomentKernels() {
  std::vector<MomentKernel> kernels = {AddMomentTile};
  if (__builtin_cpu_supports("avx2")) kernels.push_back(AddMomentTileAvx2);
  if (__builtin_cpu_supports("avx512f")) {
    kernels.push_back(AddMomentTileAvx512);
  }
  return kernels;
}

bool ChannelMomentsBuilder::Accepts(int64_t channels) {
  if (channels_ == 0) channels_ = channels;
  if (channels < 1 || channels > kMostMomentChannels || channels != channels_) {
    valid_ = false;
  }
  return valid_;
}

void ChannelMomentsBuilder::Add(absl::Span<const float> values,
                                int64_t channels) {
  if (values.empty() || !Accepts(channels)) return;
  pending_.reserve(kBlockRows * channels);
  for (; values.size() >= channels; values.remove_prefix(channels)) {
    const absl::Span<const float> row = values.subspan(0, channels);
    if (!IsUsable(row)) continue;
    pending_.insert(pending_.end(), row.begin(), row.end());
    if (pending_.size() == kBlockRows * channels) AddPending();
  }
}

// Given means m and m' over n and n' rows and the sums P and P' of the products
// of the deviations from them, the sums over all rows are
//   P + P' + (n n' / (n + n')) (m' - m) (m' - m)^T.
// P' is computed with m' rounded to float, which adds n' times the square of
// the rounding error.
void ChannelMomentsBuilder::AddPending() {
  if (pending_.empty()) return;
  const int64_t added = pending_.size() / channels_;
  mean_.resize(channels_);
  products_.resize(TriangleSize(channels_));
  const std::vector<double> mean = MeanOf(pending_, channels_);
  const std::vector<float> centre(mean.begin(), mean.end());
  FillPanels(pending_, centre, &panels_);
  const double rows = static_cast<double>(rows_) + added;
  std::vector<double> shift(channels_), remainder(channels_);
  for (int64_t i = 0; i < channels_; ++i) {
    shift[i] = mean[i] - mean_[i];
    remainder[i] = mean[i] - centre[i];
  }
  MomentTile tile;
  tile.rows = added;
  tile.channels = channels_;
  tile.shift_weight = rows_ * (added / rows);
  tile.shift = shift.data();
  tile.remainder_weight = -added;
  tile.remainder = remainder.data();
  tile.triangle = products_.data();
  AddTiles(tile);
  for (int64_t i = 0; i < channels_; ++i) {
    mean_[i] += shift[i] * (added / rows);
  }
  rows_ += added;
  pending_.clear();
}

void ChannelMomentsBuilder::AddTiles(const MomentTile& pattern) {
  static const MomentKernel kernel = MomentKernels().back();
  const int64_t panels = PanelCount(channels_);
  std::atomic<int64_t> next = 0;
  // Threads take the rows of tiles, longest first.
  const auto work = [&] {
    for (int64_t i; (i = panels - 1 - next++) >= 0;) {
      for (int64_t j = 0; j <= i; ++j) {
        MomentTile tile = pattern;
        tile.first_left = i * kMomentPanel;
        tile.first_right = j * kMomentPanel;
        tile.left = panels_.data() + i * tile.rows;
        tile.right = panels_.data() + j * tile.rows;
        kernel(tile);
      }
    }
  };
  const int64_t threads =
      std::min<int64_t>(threads_, TriangleSize(panels) / kFewestTilesPerThread);
  std::vector<std::thread> helpers;
  for (int64_t i = 1; i < threads; ++i) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
}

std::optional<ChannelMoments> ChannelMomentsBuilder::Build() {
  if (valid_) AddPending();
  if (!valid_ || rows_ == 0) return std::nullopt;
  ChannelMoments moments;
  moments.rows_ = rows_;
  moments.mean_ = std::move(mean_);
  moments.triangle_.resize(products_.size());
  for (size_t i = 0; i < products_.size(); ++i) {
    moments.triangle_[i] = static_cast<float>(products_[i] / rows_);
  }
  // Rounding may have made a tiny variance negative.
  for (int64_t i = 0; i < channels_; ++i) {
    float& variance = moments.triangle_[TriangleSize(i) + i];
    variance = std::max(variance, 0.0f);
  }
  return moments;
}

}  // namespace requant
