#include "transforms/compensated_rounding.h"

// The method is the greedy one known as OBQ or GPTQ, without their inverse of
// H. In the order of rounding, H = R·R^T with R upper triangular, so that
//   tr(D^T H D) = Σ_k |row k of R^T D|²
//               = Σ_k R_kk² · |D_k + Σ_{j<k} (R_jk / R_kk) · D_j|².
// The term of row k has no later row in it: it is smallest when the code of row
// k is the nearest one to target_k = W_k + Σ_{j<k} (R_jk / R_kk) · D_j, and is
// then R_kk² · |target_k − code_k|².

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"

// No fused multiply-add in either (-ffp-contract=off): the same bits.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define REQUANT_VECTORIZED __attribute__((target_clones("avx2", "default")))
#else
#define REQUANT_VECTORIZED
#endif
#define REQUANT_ALWAYS_INLINE inline __attribute__((always_inline))

namespace requant {
namespace {

constexpr int kMaxCode = 127;
constexpr int kMaxPairSum = 128;
constexpr int kPairSafeLevels = 64;
// Rows whose effect on the others is applied at once.
constexpr int64_t kBlock = 64;
// Columns that one thread rounds together: 884 rows of them fit a cache of
// 256 KB.
constexpr int64_t kStripe = 64;
constexpr double kDamping = 0.01;
constexpr int kDampingAttempts = 4;

// Calls work(0) … work(count − 1), in any order, in up to `threads` threads.
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

// out[r][c] −= Σ_d factors[r][d] · panel[d][c]. The two strides of `factors`
// let it be read transposed.
template <typename T>
struct Product {
  const T* factors;
  int64_t factor_row_stride;
  int64_t factor_depth_stride;
  const T* panel;
  int64_t panel_stride;
  int64_t depth;
  T* out;
  int64_t out_stride;
  int64_t rows;
  // A multiple of kTileColumns<T>.
  int64_t columns;
};

template <typename T>
constexpr int64_t kTileColumns = 64 / sizeof(T);

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

REQUANT_VECTORIZED void Subtract(const Product<float>& product) {
  SubtractTiles(product);
}
REQUANT_VECTORIZED void Subtract(const Product<double>& product) {
  SubtractTiles(product);
}

// A symmetric positive definite matrix of which the upper triangle is stored,
// and its Cholesky factor V in place: A = V^T · V.
class UpperMatrix {
 public:
  explicit UpperMatrix(int64_t size)
      : size_(size),
        stride_(((size + kTile - 1) / kTile | 1) * kTile),
        values_(size * stride_, 0.0) {}

  double* row(int64_t i) { return values_.data() + i * stride_; }

  // False if a pivot is not more than `smallest_pivot`.
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

  // Takes the rows [begin, end), which are factored, out of others. It also
  // writes a few numbers left of the diagonal, which nobody reads.
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
  // An odd number of tiles: columns of a matrix of 1024 would else all fall
  // into the same few lines of the cache.
  int64_t stride_;
  std::vector<double> values_;
};

// H as the sum of squares that is minimised (top of the file), with its rows
// in the order of rounding.
struct Objective {
  // Row of the weights that comes k-th, and the reverse.
  std::vector<int64_t> order;
  std::vector<int64_t> position;
  // H is measured in units of this, the mean of its diagonal.
  double unit = 1;
  // Relative to the unit.
  double damping = 0;
  // R_kk.
  std::vector<float> diagonal;
  // R_jk / R_kk at [k][j], for j < k.
  std::vector<float> feedback;

  int64_t rows() const { return order.size(); }
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

// R of the damped moments, as V: H with its order reversed is V^T · V, and
// R_jk = V[rows−1−k][rows−1−j].
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
  // Without rounding errors no pivot of a covariance is below the damping.
  if (!matrix.Factor(objective.damping / 10, threads)) return std::nullopt;
  return matrix;
}

// For moments that are all zero.
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

struct Matrix {
  const float* values;
  int64_t rows;
  int64_t columns;
};

// What the codes of a stripe of columns are and cost. Losses are in squared
// codes and units of the moments.
struct StripeCodes {
  // [rows][kStripe].
  std::vector<int8_t> codes;
  double loss[kStripe] = {};
  int64_t clipped[kStripe] = {};
};

// A row of a stripe, in codes: kStripe numbers each.
struct StripeRow {
  // The weights, and where the nearest codes are looked for.
  const float* wanted;
  const float* target;
  // What the neighbours allow.
  const float* low;
  const float* high;
  float diagonal;
  // code − wanted.
  float* error;
  int8_t* codes;
  double* loss;
  int64_t* clipped;
};

// With `compensate` the code is the nearest one to the target, else to the
// weight; its loss is that of missing the target either way.
REQUANT_VECTORIZED void RoundRow(const StripeRow& row, bool compensate) {
  // Rounds half to even, in two instructions.
  constexpr float kShift = 12582912.0f;  // 1.5 · 2^23
  const float* nearest_to = compensate ? row.target : row.wanted;
  float code[kStripe], miss[kStripe], cut[kStripe];
  for (int64_t c = 0; c < kStripe; ++c) {
    const float low = row.low[c], high = row.high[c], x = nearest_to[c];
    const float raised = x < low ? low : x;
    const float inside = raised > high ? high : raised;
    code[c] = (inside + kShift) - kShift;
    cut[c] = std::fabs(x - inside);
    miss[c] = row.diagonal * (row.target[c] - code[c]);
  }
  for (int64_t c = 0; c < kStripe; ++c) {
    row.error[c] = code[c] - row.wanted[c];
    row.codes[c] = static_cast<int8_t>(code[c]);
  }
  for (int64_t c = 0; c < kStripe; ++c) {
    row.loss[c] += static_cast<double>(miss[c]) * miss[c];
    row.clipped[c] += cut[c] > 0.5f;
  }
}

REQUANT_VECTORIZED void LimitByNeighbour(const int8_t* neighbour, float* low,
                                         float* high) {
  for (int64_t c = 0; c < kStripe; ++c) {
    const float code = neighbour[c];
    low[c] = std::max(low[c], -kMaxPairSum - code);
    high[c] = std::min(high[c], kMaxPairSum - code);
  }
}

// Rounds one stripe of columns at one scale.
class StripeRounder {
 public:
  // `columns` has at most kStripe columns of the weights.
  StripeRounder(const Matrix& weights, const Objective& objective,
                PairLimit limit, double codes_per_unit,
                absl::Span<const int64_t> columns)
      : weights_(weights),
        objective_(objective),
        limit_(limit),
        codes_per_unit_(codes_per_unit),
        columns_(columns),
        values_(weights.rows * kStripe, 0.0f) {
    result_.codes.resize(weights.rows * kStripe);
  }

  StripeCodes Run(bool compensate) && {
    const int64_t rows = weights_.rows;
    for (int64_t begin = 0; begin < rows; begin += kBlock) {
      const int64_t end = std::min(rows, begin + kBlock);
      for (int64_t k = begin; k < end; ++k) {
        Feed(begin, k, k, k + 1);
        Round(k, compensate);
      }
      Feed(begin, end, end, rows);
    }
    return std::move(result_);
  }

 private:
  // Adds the effect of the errors of [begin, end) to the targets of others.
  void Feed(int64_t begin, int64_t end, int64_t first, int64_t last) {
    if (begin == end || first == last) return;
    Product<float> product;
    product.factors =
        objective_.feedback.data() + first * weights_.rows + begin;
    product.factor_row_stride = weights_.rows;
    product.factor_depth_stride = 1;
    product.panel = values_.data() + begin * kStripe;
    product.panel_stride = kStripe;
    product.depth = end - begin;
    product.out = values_.data() + first * kStripe;
    product.out_stride = kStripe;
    product.rows = last - first;
    product.columns = kStripe;
    Subtract(product);
  }

  void Round(int64_t k, bool compensate) {
    const int64_t row = objective_.order[k];
    float* values = values_.data() + k * kStripe;
    float wanted[kStripe] = {}, target[kStripe], low[kStripe], high[kStripe];
    const float* from = weights_.values + row * weights_.columns;
    for (size_t c = 0; c < columns_.size(); ++c) {
      wanted[c] = static_cast<float>(from[columns_[c]] * codes_per_unit_);
    }
    for (int64_t c = 0; c < kStripe; ++c) target[c] = wanted[c] + values[c];
    SetLimits(row, low, high);
    StripeRow stripe_row;
    stripe_row.wanted = wanted;
    stripe_row.target = target;
    stripe_row.low = low;
    stripe_row.high = high;
    stripe_row.diagonal = objective_.diagonal[k];
    stripe_row.error = values;
    stripe_row.codes = result_.codes.data() + row * kStripe;
    stripe_row.loss = result_.loss;
    stripe_row.clipped = result_.clipped;
    RoundRow(stripe_row, compensate);
  }

  void SetLimits(int64_t row, float* low, float* high) const {
    std::fill_n(low, kStripe, -kMaxCode);
    std::fill_n(high, kStripe, kMaxCode);
    if (limit_ == PairLimit::kNone) return;
    for (const int64_t neighbour : {row - 1, row + 1}) {
      if (neighbour < 0 || neighbour >= weights_.rows) continue;
      if (limit_ == PairLimit::kEvenPairs && neighbour != (row ^ 1)) continue;
      if (objective_.position[neighbour] > objective_.position[row]) continue;
      LimitByNeighbour(result_.codes.data() + neighbour * kStripe, low, high);
    }
  }

  const Matrix& weights_;
  const Objective& objective_;
  const PairLimit limit_;
  const double codes_per_unit_;
  const absl::Span<const int64_t> columns_;
  // [k][kStripe]: the sum of fed errors that makes the weight a target, until
  // row k is rounded; then its error.
  std::vector<float> values_;
  StripeCodes result_;
};

// A way to round, and what came of it.
struct Plan {
  int levels;
  bool compensate;
  double loss = 0;
  int64_t clipped = 0;
  // Where codes go, [rows][columns of the weights], or nullptr.
  int8_t* codes = nullptr;
};

// Everything that the plans share.
struct Problem {
  Matrix weights;
  float largest;
  Objective objective;
  RoundingOptions options;
};

void CopyCodes(const StripeCodes& stripe, absl::Span<const int64_t> columns,
               const Matrix& weights, int8_t* codes) {
  for (int64_t row = 0; row < weights.rows; ++row) {
    for (size_t c = 0; c < columns.size(); ++c) {
      codes[row * weights.columns + columns[c]] =
          stripe.codes[row * kStripe + c];
    }
  }
}

// Carries the plans out on some columns.
void Run(const Problem& problem, absl::Span<const int64_t> columns,
         absl::Span<Plan> plans) {
  const int64_t stripes = (columns.size() + kStripe - 1) / kStripe;
  std::vector<StripeCodes> results(stripes * plans.size());
  ForEach(results.size(), problem.options.threads, [&](int64_t i) {
    const Plan& plan = plans[i / stripes];
    const auto part = columns.subspan(i % stripes * kStripe, kStripe);
    results[i] =
        StripeRounder(problem.weights, problem.objective,
                      problem.options.pair_limit,
                      plan.levels / static_cast<double>(problem.largest), part)
            .Run(plan.compensate);
    if (plan.codes != nullptr) {
      CopyCodes(results[i], part, problem.weights, plan.codes);
    }
    results[i].codes = {};
  });
  for (size_t i = 0; i < results.size(); ++i) {
    Plan& plan = plans[i / stripes];
    const double step = static_cast<double>(problem.largest) / plan.levels;
    for (int64_t c = 0; c < kStripe; ++c) {
      plan.loss += results[i].loss[c] * step * step * problem.objective.unit;
      plan.clipped += results[i].clipped[c];
    }
  }
}

std::vector<int64_t> EveryColumn(int64_t columns, int64_t stride) {
  std::vector<int64_t> chosen;
  for (int64_t c = 0; c < columns; c += stride) chosen.push_back(c);
  return chosen;
}

// The levels with the least loss on a sample of the columns. More levels are
// finer, but then the pair limit clips more codes.
int BestLevels(const Problem& problem) {
  if (problem.options.pair_limit == PairLimit::kNone) return kMaxCode;
  std::vector<Plan> plans;
  for (const int levels : {kMaxCode, 112, 96, 80, kPairSafeLevels}) {
    plans.push_back({levels, /*compensate=*/true});
  }
  const int64_t columns = problem.weights.columns;
  const int64_t stride = std::clamp<int64_t>(columns / 16, 1, 8);
  Run(problem, EveryColumn(columns, stride), absl::MakeSpan(plans));
  return std::min_element(
             plans.begin(), plans.end(),
             [](const Plan& a, const Plan& b) { return a.loss < b.loss; })
      ->levels;
}

absl::Status CheckSizes(size_t weights, int64_t rows, int64_t columns,
                        size_t moments) {
  constexpr int64_t kMost = int64_t{1} << 31;
  if (rows < 1 || columns < 1 || rows > kMost || columns > kMost ||
      weights != static_cast<uint64_t>(rows) * columns ||
      moments != static_cast<uint64_t>(rows) * rows) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a layer of ", rows, " inputs and ", columns, " outputs has ", weights,
        " weights and ", moments, " second moments of its inputs"));
  }
  return absl::OkStatus();
}

absl::StatusOr<float> LargestMagnitude(absl::Span<const float> weights) {
  float largest = 0;
  for (const float weight : weights) {
    if (!std::isfinite(weight)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a weight of the layer is ", weight));
    }
    largest = std::max(largest, std::fabs(weight));
  }
  if (largest / kMaxCode < std::numeric_limits<float>::min()) {
    return absl::InvalidArgumentError(
        "the weights of the layer are all zero, or too small for a scale");
  }
  return largest;
}

CompensatedRounding Solve(const Problem& problem) {
  const Matrix& weights = problem.weights;
  const int safe_levels = problem.options.pair_limit == PairLimit::kNone
                              ? kMaxCode
                              : kPairSafeLevels;
  std::vector<int8_t> codes(weights.rows * weights.columns);
  std::vector<int8_t> nearest(codes.size());
  Plan plans[] = {{BestLevels(problem), /*compensate=*/true},
                  {safe_levels, /*compensate=*/false}};
  plans[0].codes = codes.data();
  plans[1].codes = nearest.data();
  Run(problem, EveryColumn(weights.columns, 1), absl::MakeSpan(plans));
  // Greedy is not always better, though hardly ever worse on a whole layer.
  const bool better = plans[0].loss <= plans[1].loss;
  const Plan& best = better ? plans[0] : plans[1];
  CompensatedRounding result;
  result.codes = std::move(better ? codes : nearest);
  result.levels = best.levels;
  result.scale = problem.largest / best.levels;
  result.loss = best.loss;
  result.nearest_loss = plans[1].loss;
  result.damping = problem.objective.damping * problem.objective.unit;
  result.clipped = best.clipped;
  return result;
}

}  // namespace

absl::StatusOr<CompensatedRounding> RoundCompensated(
    absl::Span<const float> weights, int64_t rows, int64_t columns,
    absl::Span<const double> moments, const RoundingOptions& options) {
  REQUANT_RETURN_IF_ERROR(
      CheckSizes(weights.size(), rows, columns, moments.size()));
  Problem problem;
  REQUANT_ASSIGN_OR_RETURN(problem.largest, LargestMagnitude(weights));
  REQUANT_ASSIGN_OR_RETURN(problem.objective,
                           MakeObjective(moments, rows, options.threads));
  problem.weights = {weights.data(), rows, columns};
  problem.options = options;
  return Solve(problem);
}

}  // namespace requant
