#include "transforms/layers/compensated_rounding.h"

// The method is the greedy one known as OBQ or GPTQ, without inverting H. In
// the order of rounding, H = R·R^T with R upper triangular, so that
//   tr(D^T H D) = Σ_k |row k of R^T D|²
//               = Σ_k R_kk² · |D_k + Σ_{j<k} (R_jk / R_kk) · D_j|².
// The term of row k does not involve later rows. It is smallest when row k's
// code is nearest to target_k = W_k + Σ_{j<k} (R_jk / R_kk) · D_j, and is then
// R_kk² · |target_k − code_k|².

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"

// Neither version fuses multiply-adds (-ffp-contract=off), so the bits agree.
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
// The number of rows whose effect on the others is applied at once.
constexpr int64_t kBlock = 64;
// The number of columns that one thread rounds together. With 884 rows they fit
// a cache of 256 KB.
constexpr int64_t kStripe = 64;
constexpr double kDamping = 0.01;
constexpr int kDampingAttempts = 4;

// Calls work(0) … work(count − 1), in any order, on up to `threads` threads.
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

// Computes out[r][c] −= Σ_d factors[r][d] · panel[d][c]. The two strides of
// `factors` allow it to be read transposed.
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
  // Must be a multiple of kTileColumns<T>.
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

// H in the form of the sum of squares to minimise (see the top of the file),
// with its rows in the order of rounding.
struct Objective {
  // The weights' row that comes k-th, and the inverse mapping.
  std::vector<int64_t> order;
  std::vector<int64_t> position;
  // The mean of H's diagonal, which is the unit of H here.
  double unit = 1;
  // In the same unit.
  double damping = 0;
  // R_kk for each k.
  std::vector<float> diagonal;
  // R_jk / R_kk at [k][j] for j < k.
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

// The inputs that all ways of rounding share.
struct Problem {
  Matrix weights;
  float largest;
  Objective objective;
  RoundingOptions options;
};

// The codes of a stripe of columns and their losses, which are in squared codes
// and units of the moments.
struct StripeCodes {
  // Has the shape [rows][kStripe].
  std::vector<int8_t> codes;
  double loss[kStripe] = {};
  int64_t clipped[kStripe] = {};
};

// A row of a stripe, in units of codes: kStripe numbers each.
struct StripeRow {
  // The weights, and the values that would cause no loss.
  const float* wanted;
  const float* target;
  // The values to be nearest to, without and with the pair limit.
  const float* free_aim;
  const float* aim;
  // The bounds set by ±127 and the neighbours.
  const float* low;
  const float* high;
  float diagonal;
  // code − wanted.
  float* error;
  int8_t* codes;
  double* loss;
  int64_t* clipped;
};

REQUANT_VECTORIZED void RoundRow(const StripeRow& row) {
  // Rounds half to even, in two instructions.
  constexpr float kShift = 12582912.0f;  // 1.5 · 2^23
  float code[kStripe], miss[kStripe], cut[kStripe];
  for (int64_t c = 0; c < kStripe; ++c) {
    const float low = row.low[c], high = row.high[c], x = row.aim[c];
    const float raised = x < low ? low : x;
    const float inside = raised > high ? high : raised;
    code[c] = (inside + kShift) - kShift;
    cut[c] = std::fabs(row.free_aim[c] - inside);
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

// Where two targets together exceed the limit, moves the aim of the first by
// its share of the excess.
REQUANT_VECTORIZED void ShareExcess(const float* target, const float* neighbour,
                                    float share, float* aim) {
  for (int64_t c = 0; c < kStripe; ++c) {
    const float sum = target[c] + neighbour[c];
    const float above = std::max(sum - kMaxPairSum, 0.0f);
    const float below = std::min(sum + kMaxPairSum, 0.0f);
    const float moved = target[c] - share * (above + below);
    aim[c] = std::fabs(moved) < std::fabs(aim[c]) ? moved : aim[c];
  }
}

// Rounds one stripe of columns at one scale.
class StripeRounder {
 public:
  // The stripe has `count` columns, at most kStripe.
  StripeRounder(const Problem& problem, int levels, int64_t first,
                int64_t count)
      : weights_(problem.weights),
        objective_(problem.objective),
        limit_(problem.options.pair_limit),
        codes_per_unit_(levels / static_cast<double>(problem.largest)),
        first_(first),
        count_(count),
        values_(weights_.rows * kStripe, 0.0f) {
    result_.codes.resize(weights_.rows * kStripe);
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
    float wanted[kStripe], target[kStripe], aim[kStripe];
    float low[kStripe], high[kStripe];
    Load(row, wanted);
    AddFeedback(k, wanted, target);
    const float* free_aim = compensate ? target : wanted;
    std::copy_n(free_aim, kStripe, aim);
    std::fill_n(low, kStripe, -kMaxCode);
    std::fill_n(high, kStripe, kMaxCode);
    for (const int64_t neighbour : {row - 1, row + 1}) {
      if (!IsLimitedWith(neighbour)) continue;
      if (objective_.position[neighbour] < k) {
        LimitByNeighbour(result_.codes.data() + neighbour * kStripe, low, high);
      } else if (compensate) {
        LeaveRoom(k, objective_.position[neighbour], target, aim);
      }
    }
    StripeRow stripe_row;
    stripe_row.wanted = wanted;
    stripe_row.target = target;
    stripe_row.free_aim = free_aim;
    stripe_row.aim = aim;
    stripe_row.low = low;
    stripe_row.high = high;
    stripe_row.diagonal = objective_.diagonal[k];
    stripe_row.error = values_.data() + k * kStripe;
    stripe_row.codes = result_.codes.data() + row * kStripe;
    stripe_row.loss = result_.loss;
    stripe_row.clipped = result_.clipped;
    RoundRow(stripe_row);
  }

  void Load(int64_t row, float* wanted) const {
    const float* from = weights_.values + row * weights_.columns + first_;
    std::fill_n(wanted, kStripe, 0.0f);
    for (int64_t c = 0; c < count_; ++c) {
      wanted[c] = static_cast<float>(from[c] * codes_per_unit_);
    }
  }

  void AddFeedback(int64_t k, const float* wanted, float* target) const {
    const float* fed = values_.data() + k * kStripe;
    for (int64_t c = 0; c < kStripe; ++c) target[c] = wanted[c] + fed[c];
  }

  bool IsLimitedWith(int64_t neighbour) const {
    return limit_ == PairLimit::kNeighbours && neighbour >= 0 &&
           neighbour < weights_.rows;
  }

  // Aims row k so that a neighbour rounded `later` need not bear the whole
  // excess of their targets over the limit. The later target does not include
  // this block's errors yet, but is close enough.
  void LeaveRoom(int64_t k, int64_t later, const float* target,
                 float* aim) const {
    float neighbour[kStripe];
    Load(objective_.order[later], neighbour);
    AddFeedback(later, neighbour, neighbour);
    const float own = objective_.diagonal[k] * objective_.diagonal[k];
    const float other = objective_.diagonal[later] * objective_.diagonal[later];
    ShareExcess(target, neighbour, other / (own + other), aim);
  }

  const Matrix& weights_;
  const Objective& objective_;
  const PairLimit limit_;
  const double codes_per_unit_;
  const int64_t first_;
  const int64_t count_;
  // Has the shape [k][kStripe]: until row k is rounded, the sum of fed errors
  // that turns the weight into a target; then the row's error.
  std::vector<float> values_;
  StripeCodes result_;
};

// A way to round, and its result.
struct Plan {
  int levels;
  bool compensate;
  double loss = 0;
  // The sum of the squares of the columns' losses, which chooses the levels: a
  // clipped code's error falls on one output alone. On Wide & Deep with every
  // two neighbours limited, the least loss chose a worse model (mean change of
  // the output .00136, not .00120); with pairs it made no difference.
  double squared_losses = 0;
  int64_t clipped = 0;
  std::vector<int8_t> codes = {};
};

void CopyCodes(const StripeCodes& stripe, int64_t first, int64_t count,
               const Matrix& weights, int8_t* codes) {
  for (int64_t row = 0; row < weights.rows; ++row) {
    std::copy_n(stripe.codes.data() + row * kStripe, count,
                codes + row * weights.columns + first);
  }
}

// Carries the plans out.
void Run(const Problem& problem, absl::Span<Plan> plans) {
  const Matrix& weights = problem.weights;
  for (Plan& plan : plans) plan.codes.resize(weights.rows * weights.columns);
  const int64_t stripes = (weights.columns + kStripe - 1) / kStripe;
  std::vector<StripeCodes> results(stripes * plans.size());
  ForEach(results.size(), problem.options.threads, [&](int64_t i) {
    Plan& plan = plans[i / stripes];
    const int64_t first = i % stripes * kStripe;
    const int64_t count = std::min(kStripe, weights.columns - first);
    StripeRounder rounder(problem, plan.levels, first, count);
    results[i] = std::move(rounder).Run(plan.compensate);
    CopyCodes(results[i], first, count, weights, plan.codes.data());
    results[i].codes = {};
  });
  for (size_t i = 0; i < results.size(); ++i) {
    Plan& plan = plans[i / stripes];
    const double step = static_cast<double>(problem.largest) / plan.levels;
    for (int64_t c = 0; c < kStripe; ++c) {
      const double loss =
          results[i].loss[c] * step * step * problem.objective.unit;
      plan.loss += loss;
      plan.squared_losses += loss * loss;
      plan.clipped += results[i].clipped[c];
    }
  }
}

// Returns nearest rounding at levels that are always safe, then the compensated
// plans. More levels are finer, but the pair limit then clips more codes; those
// are so few that a sample of the columns would not show the effect.
std::vector<Plan> MakePlans(PairLimit limit) {
  if (limit == PairLimit::kNone) return {{kMaxCode, false}, {kMaxCode, true}};
  std::vector<Plan> plans = {{kPairSafeLevels, false}};
  for (const int levels : {kMaxCode, 116, 104, 92, 80, kPairSafeLevels}) {
    plans.push_back({levels, true});
  }
  return plans;
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

// Returns the best plan. That is the first, nearest rounding, if the greedy
// ones lose more, which hardly ever happens to a whole layer.
Plan& BestPlan(absl::Span<Plan> plans) {
  Plan* best = &plans[0];
  for (Plan& plan : plans.subspan(1)) {
    if (plan.loss > plans[0].loss) continue;
    if (best == &plans[0] || plan.squared_losses < best->squared_losses) {
      best = &plan;
    }
  }
  return *best;
}

CompensatedRounding Solve(const Problem& problem) {
  std::vector<Plan> plans = MakePlans(problem.options.pair_limit);
  Run(problem, absl::MakeSpan(plans));
  Plan& best = BestPlan(absl::MakeSpan(plans));
  CompensatedRounding result;
  result.codes = std::move(best.codes);
  result.levels = best.levels;
  result.scale = problem.largest / best.levels;
  result.loss = best.loss;
  result.nearest_loss = plans[0].loss;
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
