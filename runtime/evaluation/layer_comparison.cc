#include "runtime/evaluation/layer_comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/statistics/paired_comparison.h"
#include "tensorflow/core/framework/types.h"

namespace requant {
namespace {

using tensorflow::Tensor;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// The number of steps between the lowest and the highest code.
constexpr double kSteps = 255;

// Returns infinity for NaN.
double Known(double value) { return std::isnan(value) ? kInfinity : value; }

double Sum(const std::vector<double>& terms) {
  double sum = 0;
  for (const double term : terms) sum += term;
  return sum;
}

absl::Status CheckFloat(const std::string& name, const Tensor& tensor) {
  if (tensor.dtype() == tensorflow::DT_FLOAT) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the layer's output ", name, " is of type ",
                   tensorflow::DataTypeString(tensor.dtype()),
                   ", and only float is compared"));
}

absl::Status CheckEnd(const std::string& name, const Tensor& tensor) {
  if (tensor.dtype() == tensorflow::DT_FLOAT && tensor.NumElements() == 1) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is no end of a range: it is a ",
                   tensorflow::DataTypeString(tensor.dtype()),
                   " tensor of shape ", tensor.shape().DebugString()));
}

double Width(const Interval& interval) {
  return interval.high() - interval.low();
}

// The values that the 256 codes of a range stand for.
struct CodeBook {
  // Indexed by the code's byte, which is 255 for a qint8 code of −1.
  std::array<float, 256> values = {};
  // The lowest and the highest value.
  double low = 0;
  double high = 0;
  // The step between neighboring codes; 0 for a range of no width.
  double step = 0;
};

// Returns the code book; `type` is DT_QUINT8 or DT_QINT8, `coding` not kFloat.
CodeBook MakeCodeBook(LayerCoding coding, tensorflow::DataType type, float min,
                      float max) {
  const bool is_signed = type == tensorflow::DT_QINT8;
  const int lowest = is_signed ? -128 : 0;
  CodeBook book;
  double origin = 0;
  if (coding == LayerCoding::kScaled) {
    const double largest =
        std::max(std::abs(static_cast<double>(min)), std::abs(double{max}));
    book.step = largest / (is_signed ? 127 : 255);
    book.low = is_signed ? -largest : 0;
    book.high = largest;
  } else {
    book.step = (static_cast<double>(max) - min) / kSteps;
    book.low = min;
    book.high = max;
    origin = min - lowest * book.step;
  }
  for (int code = lowest; code < lowest + 256; ++code) {
    book.values[static_cast<uint8_t>(code)] =
        static_cast<float>(origin + code * book.step);
  }
  return book;
}

}  // namespace

absl::Status LayerComparison::Add(int64_t records, const Tensor& baseline,
                                  const Tensor& tensor, const Tensor* min,
                                  const Tensor* max) {
  REQUANT_RETURN_IF_ERROR(CheckFloat(pair_.float_tensor, baseline));
  REQUANT_RETURN_IF_ERROR(CheckShapes(baseline, tensor));
  const float* values = nullptr;
  const float* baseline_values = baseline.flat<float>().data();
  const int64_t count = baseline.NumElements();
  if (pair_.coding == LayerCoding::kFloat) {
    REQUANT_RETURN_IF_ERROR(CheckFloat(pair_.tensor, tensor));
    values = tensor.flat<float>().data();
  } else {
    REQUANT_RETURN_IF_ERROR(Decode(records, tensor, *min, *max));
    values = decoded_.data();
    AddClipped(records, baseline_values, count);
  }
  AddDifferences(baseline_values, values);
  AddObserved(baseline_values, count);
  records_ += records;
  values_ += count;
  return absl::OkStatus();
}

absl::Status LayerComparison::CheckShapes(const Tensor& baseline,
                                          const Tensor& tensor) {
  const int64_t channels =
      baseline.dims() < 1 ? 1 : baseline.dim_size(baseline.dims() - 1);
  if (error_.empty()) {
    for (auto* sums :
         {&error_, &squared_error_, &squared_signal_, &error_times_signal_}) {
      sums->assign(channels, 0);
    }
  }
  if (baseline.shape() != tensor.shape() ||
      channels != static_cast<int64_t>(error_.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("the layer ", pair_.name,
                     " cannot be compared: ", pair_.tensor, " has shape ",
                     tensor.shape().DebugString(), ", and ", pair_.float_tensor,
                     " of the baseline ", baseline.shape().DebugString()));
  }
  rows_ = channels == 0 ? 0 : baseline.NumElements() / channels;
  return absl::OkStatus();
}

absl::Status LayerComparison::Decode(int64_t records, const Tensor& codes,
                                     const Tensor& min, const Tensor& max) {
  if (codes.dtype() != tensorflow::DT_QUINT8 &&
      codes.dtype() != tensorflow::DT_QINT8) {
    return absl::InvalidArgumentError(
        absl::StrCat(pair_.tensor, " holds no eight-bit codes but ",
                     tensorflow::DataTypeString(codes.dtype())));
  }
  REQUANT_RETURN_IF_ERROR(CheckEnd(pair_.min_tensor, min));
  REQUANT_RETURN_IF_ERROR(CheckEnd(pair_.max_tensor, max));
  const CodeBook book = MakeCodeBook(
      pair_.coding, codes.dtype(), min.flat<float>()(0), max.flat<float>()(0));
  const auto* bytes = reinterpret_cast<const uint8_t*>(codes.data());
  decoded_.resize(codes.NumElements());
  for (size_t i = 0; i < decoded_.size(); ++i) {
    decoded_[i] = book.values[bytes[i]];
  }
  least_ = book.low - book.step / 2;
  greatest_ = book.high + book.step / 2;
  step_sum_ += book.step * static_cast<double>(records);
  const Interval range = MakeInterval(book.low, book.high);
  if (!range_.has_value() || Width(range) > Width(*range_)) range_ = range;
  return absl::OkStatus();
}

void LayerComparison::AddDifferences(const float* baseline,
                                     const float* values) {
  const size_t channels = error_.size();
  double* const error = error_.data();
  double* const squared_error = squared_error_.data();
  double* const squared_signal = squared_signal_.data();
  double* const error_times_signal = error_times_signal_.data();
  double max_error = max_error_;
  for (int64_t row = 0; row < rows_; ++row) {
    for (size_t i = 0; i < channels; ++i) {
      const double signal = baseline[i];
      const double difference = values[i] - signal;
      error[i] += difference;
      squared_error[i] += difference * difference;
      squared_signal[i] += signal * signal;
      error_times_signal[i] += difference * signal;
      // NaN shows in the sums.
      max_error = std::max(max_error, std::abs(difference));
    }
    baseline += channels;
    values += channels;
  }
  max_error_ = max_error;
}

void LayerComparison::AddObserved(const float* baseline, int64_t count) {
  float low = std::numeric_limits<float>::infinity();
  float high = -low;
  for (int64_t i = 0; i < count; ++i) {
    // NaN changes neither.
    low = baseline[i] < low ? baseline[i] : low;
    high = baseline[i] > high ? baseline[i] : high;
  }
  if (low > high) return;
  if (!observed_.has_value()) observed_ = MakeInterval(low, high);
  observed_->set_low(std::min(observed_->low(), double{low}));
  observed_->set_high(std::max(observed_->high(), double{high}));
}

void LayerComparison::AddClipped(int64_t records, const float* baseline,
                                 int64_t count) {
  const double low = least_, high = greatest_;
  const int64_t of_record = records == 0 ? 0 : count / records;
  for (int64_t record = 0; record < records; ++record) {
    int64_t clipped = 0;
    for (int64_t i = 0; i < of_record; ++i) {
      clipped += baseline[i] < low || baseline[i] > high;
    }
    clipped_ += clipped;
    clipped_records_ += clipped > 0;
    baseline += of_record;
  }
}

ComparedLayer LayerComparison::Result() const {
  ComparedLayer layer;
  layer.set_name(pair_.name);
  layer.set_baseline_tensor(pair_.float_tensor);
  layer.set_tensor(pair_.tensor);
  layer.set_quantized(pair_.coding != LayerCoding::kFloat);
  layer.set_records(records_);
  if (values_ == 0) return layer;
  const Interval observed = observed_.value_or(Interval());
  *layer.mutable_observed() = observed;
  if (range_.has_value()) {
    layer.set_step(step_sum_ / static_cast<double>(records_));
    *layer.mutable_range() = *range_;
  } else {
    layer.set_step(Width(observed) / kSteps);
  }
  const auto values = static_cast<double>(values_);
  layer.set_clipped_share(static_cast<double>(clipped_) / values);
  layer.set_clipped_records(static_cast<double>(clipped_records_) /
                            static_cast<double>(records_));
  const double signal = Sum(squared_signal_);
  layer.set_gain(signal == 0 ? 1
                             : 1 + Known(Sum(error_times_signal_)) / signal);
  const double rms_error = std::sqrt(Known(Sum(squared_error_)) / values);
  const double rms_signal = std::sqrt(signal / values);
  layer.set_rms_error(rms_error);
  layer.set_rms_signal(rms_signal);
  layer.set_max_error(std::isinf(rms_error) ? kInfinity : max_error_);
  layer.set_signal_to_noise(
      rms_error == 0
          ? kInfinity
          : (std::isinf(rms_error) ? -kInfinity
                                   : 20 * std::log10(rms_signal / rms_error)));
  double worst = -1;
  for (size_t i = 0; i < error_.size(); ++i) {
    const double sum = Known(error_[i]);
    if (std::abs(sum) <= worst) continue;
    worst = std::abs(sum);
    layer.set_worst_channel(static_cast<int64_t>(i));
    layer.set_worst_channel_shift(sum * static_cast<double>(error_.size()) /
                                  values);
  }
  return layer;
}

}  // namespace requant
