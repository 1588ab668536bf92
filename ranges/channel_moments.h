#ifndef REQUANT_RANGES_CHANNEL_MOMENTS_H_
#define REQUANT_RANGES_CHANNEL_MOMENTS_H_

// The mean of each channel of a tensor and how the channels vary together: what
// rounding a layer's weights needs to know of the layer's inputs.

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ranges/moment_kernel.h"

namespace requant {

// Moments are kept of tensors with at most this many channels.
inline constexpr int64_t kMostMomentChannels = 4096;

// Rows with a greater value, or one that is not a number, are left out: squares
// of what is in the others add up without an overflow.
inline constexpr float kMostMomentValue = 1e15f;

// The mean and the covariance of `channels` values over `rows` rows of them.
class ChannelMoments {
 public:
  // Makes moments of no rows and no channels.
  ChannelMoments() = default;

  // Makes moments of what the accessors below gave. Anything else than they can
  // give is an error, or, if harmless, taken as it is.
  static absl::StatusOr<ChannelMoments> Restore(int64_t rows,
                                                std::vector<double> mean,
                                                std::vector<float> triangle);

  // Returns those of `values`, which are whole rows; nothing if there are no
  // moments of them (ChannelMomentsBuilder).
  static std::optional<ChannelMoments> Of(absl::Span<const float> values,
                                          int64_t channels);

  // Adds the other's rows, which are of as many channels. It does not matter to
  // the result which of the two is added to which.
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

// Computes moments of rows that come in batches. The result depends on the rows
// and their order alone: not on the batches, the CPU or the number of threads.
class ChannelMomentsBuilder {
 public:
  explicit ChannelMomentsBuilder(int threads = 1) : threads_(threads) {}

  // Adds whole rows of `channels` values each.
  void Add(absl::Span<const float> values, int64_t channels);

  // Returns the moments of all rows; nothing if there were none, if they were
  // of different numbers of channels, or of more than kMostMomentChannels.
  // Nothing may be added after that.
  std::optional<ChannelMoments> Build();

 private:
  // Returns whether rows of that many channels can be added to the others.
  bool Accepts(int64_t channels);
  // Adds the pending rows to the sums.
  void AddPending();
  // Adds all tiles, of which `pattern` has what they have in common.
  void AddTiles(const MomentTile& pattern);

  int threads_;
  bool valid_ = true;
  int64_t channels_ = 0;
  // Sums over rows whose values are of a similar size are precise in float;
  // these rows wait until there are enough for one.
  std::vector<float> pending_;
  std::vector<MomentRow> panels_;
  // The number of rows that do not wait, and their means.
  int64_t rows_ = 0;
  std::vector<double> mean_;
  // The triangle of the covariance, times rows_.
  std::vector<double> products_;
};

}  // namespace requant

#endif  // REQUANT_RANGES_CHANNEL_MOMENTS_H_
