#include "transforms/layers/rounding_objective.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <optional>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"

#define REQUANT_ALWAYS_INLINE inline __attribute__((always_inline))

namespace requant::rounding {
namespace {

constexpr double kDamping = 0.01;
constexpr int kDampingAttempts = 4;

template <typename T>
struct Vector;
template <>
struct Vector<float> {
  typedef float Type __attribute__((vector_size(32), aligned(4), may_alias));
};
template <>
struct Vector<double> {
  typedef double Type __attribute__((vector_size(32), aligned(8), may_alias));
};

template <typename T, int kRows>
REQUANT_ALWAYS_INLINE void SubtractTile(const Product<T>& product, int64_t row,
                                        int64_t column) {
  using Vec = typename Vector<T>::Type;
  constexpr int kVectors = 2;
  constexpr int64_t kWidth = kTileColumns<T> / kVectors;
  Vec sums[kRows][kVectors] = {};
  const T* factors = product.factors + row * product.factor_row_stride;
  const T* panel = product.panel + column;
  for (int64_t d = 0; d < product.depth; ++d) {
    for (int v = 0; v < kVectors; ++v) {
      const Vec values = *reinterpret_cast<const Vec*>(panel + v * kWidth);
      for (int r = 0; r < kRows; ++r) {
        sums[r][v] += factors[r * product.factor_row_stride] * values;
      }
    }
    factors += product.factor_depth_stride;
    panel += product.panel_stride;
  }
  for (int r = 0; r < kRows; ++r) {
    T* out = product.out + (row + r) * product.out_stride + column;
    for (int v = 0; v < kVectors; ++v) {
      *reinterpret_cast<Vec*>(out + v * kWidth) -= sums[r][v];
    }
  }
}

template <typename T>
REQUANT_ALWAYS_INLINE void SubtractTiles(const Product<T>& product) {
  constexpr int kRows = 4;
  int64_t row = 0;
  for (; row + kRows <= product.rows; row += kRows) {
    for (int64_t c = 0; c < product.columns; c += kTileColumns<T>) {
      SubtractTile<T, kRows>(product, row, c);
    }
  }
  for (; row < product.rows; ++row) {
    for (int64_t c = 0; c < product.columns; c += kTileColumns<T>) {
      SubtractTile<T, 1>(product, row, c);
    }
  }
}

// A symmetric positive definite matrix A, stored as its upper triangle, or in
// its place the Cholesky factor V: A = V^T · V.
class UpperMatrix {
 public:
  explicit UpperMatrix(int64_t size)
      : size_(size),
        stride_(((size + kTile - 1) / kTile | 1) * kTile),
        values_(size * stride_, 0.0) {}

  double* row(int64_t i) { return values_.data() + i * stride_; }

  // Returns false if a pivot is not greater than `smallest_pivot`.
  bool Factor(double smallest_pivot, int threads) {
    for (int64_t begin = 0; begin < size_; begin += kBlock) {
      const int64_t end = std::min(size_, begin + kBlock);
      if (!FactorRows(begin, end, smallest_pivot)) return false;
      constexpr int64_t kChunk = 16;
      ForEach((size_ - end + kChunk - 1) / kChunk, threads, [&](int64_t i) {
        const int64_t row = end + i * kChunk;
        SubtractRows(begin, end, row, std::min(size_, row + kChunk));
      });
    }
    return true;
  }

 private:
  static constexpr int64_t kTile = kTileColumns<double>;

  bool FactorRows(int64_t begin, int64_t end, double smallest_pivot) {
    for (int64_t i = begin; i < end; ++i) {
      SubtractRows(begin, i, i, i + 1);
      const double pivot = row(i)[i];
      if (!(pivot > smallest_pivot) || !std::isfinite(pivot)) return false;
      const double inverse = 1 / std::sqrt(pivot);
      for (int64_t j = i; j < size_; ++j) row(i)[j] *= inverse;
    }
    return true;
  }

  // Eliminates the factored rows [begin, end) from others. It also writes a few
  // numbers left of the diagonal, which are never read.
  void SubtractRows(int64_t begin, int64_t end, int64_t first, int64_t last) {
    const int64_t column = first / kTile * kTile;
    Product<double> product;
    product.factors = row(begin) + first;
    product.factor_row_stride = 1;
    product.factor_depth_stride = stride_;
    product.panel = row(begin) + column;
    product.panel_stride = stride_;
    product.depth = end - begin;
    product.out = row(first) + column;
    product.out_stride = stride_;
    product.rows = last - first;
    product.columns = stride_ - column;
    Subtract(product);
  }

  int64_t size_;
  // An odd number of tiles. Otherwise the columns of a matrix of size 1024
  // would all fall into the same few cache lines.
  int64_t stride_;
  std::vector<double> values_;
};

absl::Status NotACovariance(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(
      "the second moments of the layer's inputs are no covariance matrix: ",
      why, "; calibrate again"));
}

absl::StatusOr<double> MeanVariance(absl::Span<const double> moments,
                                    int64_t rows) {
  double sum = 0;
  double largest = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const double variance = moments[i * rows + i];
    if (variance < 0) {
      return NotACovariance(
          absl::StrCat("input ", i, " has the variance ", variance));
    }
    sum += variance;
    for (int64_t j = 0; j <= i; ++j) {
      const double magnitude = std::fabs(moments[i * rows + j]);
      if (!std::isfinite(magnitude)) {
        return NotACovariance(absl::StrCat("that of inputs ", i, " and ", j,
                                           " is ", moments[i * rows + j]));
      }
      largest = std::max(largest, magnitude);
    }
  }
  if (!std::isfinite(sum)) return NotACovariance("they are too large");
  if (sum == 0 && largest > 0) {
    return NotACovariance("inputs of no variance vary together");
  }
  return sum / rows;
}

std::vector<int64_t> DescendingVariance(absl::Span<const double> moments,
                                        int64_t rows) {
  std::vector<int64_t> order(rows);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return moments[a * rows + a] > moments[b * rows + b];
  });
  return order;
}

// Returns R of the damped moments, as V: H with its order reversed is V^T · V,
// and R_jk = V[rows−1−k][rows−1−j].
std::optional<UpperMatrix> Factor(absl::Span<const double> moments,
                                  const Objective& objective, int threads) {
  const int64_t rows = objective.rows();
  const double inverse = 1 / objective.unit;
  UpperMatrix matrix(rows);
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t a = objective.order[rows - 1 - i];
    for (int64_t j = i; j < rows; ++j) {
      const int64_t b = objective.order[rows - 1 - j];
      matrix.row(i)[j] =
          moments[std::max(a, b) * rows + std::min(a, b)] * inverse;
    }
    matrix.row(i)[i] += objective.damping;
  }
  // If there were no rounding errors, no pivot would be below the damping.
  if (!matrix.Factor(objective.damping / 10, threads)) return std::nullopt;
  return matrix;
}

// Sets `objective` for moments that are all zero.
void SetIdentity(Objective* objective) {
  const int64_t rows = objective->rows();
  objective->unit = 1;
  objective->diagonal.assign(rows, 1);
  objective->feedback.assign(rows * rows, 0);
}

void SetFactor(UpperMatrix& matrix, Objective* objective) {
  const int64_t rows = objective->rows();
  objective->diagonal.resize(rows);
  objective->feedback.assign(rows * rows, 0);
  for (int64_t k = 0; k < rows; ++k) {
    const double* from = matrix.row(rows - 1 - k);
    const double diagonal = from[rows - 1 - k];
    objective->diagonal[k] = diagonal;
    const double inverse = 1 / diagonal;
    for (int64_t j = 0; j < k; ++j) {
      objective->feedback[k * rows + j] = from[rows - 1 - j] * inverse;
    }
  }
}

}  // namespace

void ForEach(int64_t count, int threads,
             const std::function<void(int64_t)>& work) {
  std::atomic<int64_t> next{0};
  const auto run = [&] {
    for (int64_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> helpers;
  for (int64_t i = 1; i < std::min<int64_t>(threads, count); ++i) {
    helpers.emplace_back(run);
  }
  run();
  for (std::thread& helper : helpers) helper.join();
}

REQUANT_VECTORIZED void Subtract(const Product<float>& product) {
  SubtractTiles(product);
}
REQUANT_VECTORIZED void Subtract(const Product<double>& product) {
  SubtractTiles(product);
}

absl::StatusOr<Objective> MakeObjective(absl::Span<const double> moments,
                                        int64_t rows, int threads) {
  Objective objective;
  REQUANT_ASSIGN_OR_RETURN(objective.unit, MeanVariance(moments, rows));
  objective.order = DescendingVariance(moments, rows);
  objective.position.resize(rows);
  for (int64_t k = 0; k < rows; ++k) objective.position[objective.order[k]] = k;
  if (!std::isnormal(objective.unit)) {
    SetIdentity(&objective);
    return objective;
  }
  objective.damping = kDamping;
  for (int attempt = 0; attempt < kDampingAttempts; ++attempt) {
    std::optional<UpperMatrix> matrix = Factor(moments, objective, threads);
    if (matrix.has_value()) {
      SetFactor(*matrix, &objective);
      return objective;
    }
    objective.damping *= 10;
  }
  return NotACovariance("it is not positive semidefinite");
}

}  // namespace requant::rounding
