#ifndef REQUANT_RANGES_CHANNEL_MOMENTS_H_
#define REQUANT_RANGES_CHANNEL_MOMENTS_H_

// The mean of each channel of a tensor and the channels' covariances, which
// rounding a layer's weights requires for the layer's inputs.

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ranges/moment_kernel.h"

namespace requant {

// Moments are kept only for tensors with at most this many channels.
inline constexpr int64_t kMostMomentChannels = 4096;

// Rows with a larger value or a NaN are skipped, so that sums of squares of the
// other rows do not overflow.
inline constexpr float kMostMomentValue = 1e15f;

// The mean and the covariance of `channels` values over `rows` rows.
class ChannelMoments {
 public:
  // Makes moments of zero rows and zero channels.
  ChannelMoments() = default;

  // Restores moments from the results of the accessors below. Other values are
  // an error or, if harmless, accepted.
  static absl::StatusOr<ChannelMoments> Restore(int64_t rows,
                                                std::vector<double> mean,
                                                std::vector<float> triangle);

  // Returns the moments of `values`, which are whole rows, or nullopt if there
  // are none (see ChannelMomentsBuilder).
  static std::optional<ChannelMoments> Of(absl::Span<const float> values,
                                          int64_t channels);

  // Adds the other's rows, which must have the same number of channels. The
  // operation is commutative.
  void Merge(const ChannelMoments& other);

  int64_t rows() const { return rows_; }
  int64_t channels() const { return static_cast<int64_t>(mean_.size()); }
  absl::Span<const double> mean() const { return mean_; }

  // Returns the mean over all rows of (x_i - mean_i) * (x_j - mean_j).
  float Covariance(int64_t i, int64_t j) const {
    return i < j ? Covariance(j, i) : triangle_[i * (i + 1) / 2 + j];
  }
  // Returns the covariances of i >= j, at index i * (i + 1) / 2 + j.
  absl::Span<const float> triangle() const { return triangle_; }

  bool operator==(const ChannelMoments& other) const;

 private:
  friend class ChannelMomentsBuilder;

  int64_t rows_ = 0;
  std::vector<double> mean_;
  std::vector<float> triangle_;
};

// Computes moments of rows that come in batches. The result depends only on the
// rows and their order, not on the batches, the CPU or the number of threads.
class ChannelMomentsBuilder {
 public:
  explicit ChannelMomentsBuilder(int threads = 1) : threads_(threads) {}

  // Adds whole rows of `channels` values each.
  void Add(absl::Span<const float> values, int64_t channels);

  // Returns the moments of all rows, or nullopt if there were none, if their
  // numbers of channels differed, or if these exceeded kMostMomentChannels.
  // Nothing may be added after that.
  std::optional<ChannelMoments> Build();

 private:
  // Returns whether rows with that many channels can be added to the others.
  bool Accepts(int64_t channels);
  // Adds the pending rows to the sums.
  void AddPending();
  // Adds all tiles; `pattern` has their common fields.
  void AddTiles(const MomentTile& pattern);

  int threads_;
  bool valid_ = true;
  int64_t channels_ = 0;
  // Float sums over a few rows of similar values are precise; rows wait here
  // until there are enough for one.
  std::vector<float> pending_;
  std::vector<MomentRow> panels_;
  // The number of rows added to the sums, and their means.
  int64_t rows_ = 0;
  std::vector<double> mean_;
  // The triangle of the covariance matrix, times rows_.
  std::vector<double> products_;
};

}  // namespace requant

#endif  // REQUANT_RANGES_CHANNEL_MOMENTS_H_
