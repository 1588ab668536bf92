#include "transforms/layers/compensated_rounding.h"

// The method is the greedy one known as OBQ or GPTQ, without inverting H. In
// the order of rounding, H = R·R^T with R upper triangular, so that
//   tr(D^T H D) = Σ_k |row k of R^T D|²
//               = Σ_k R_kk² · |D_k + Σ_{j<k} (R_jk / R_kk) · D_j|².
// The term of row k does not involve later rows. It is smallest when row k's
// code is nearest to target_k = W_k + Σ_{j<k} (R_jk / R_kk) · D_j, and is then
// R_kk² · |target_k − code_k|².

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "transforms/layers/rounding_objective.h"

namespace requant {
namespace {

using rounding::ForEach;
using rounding::kBlock;
using rounding::Objective;
using rounding::Product;
using rounding::Subtract;

constexpr int kMaxCode = 127;
constexpr int kMaxPairSum = 128;
constexpr int kPairSafeLevels = 64;
// The number of columns that one thread rounds together. With 884 rows they fit
// a cache of 256 KB.
constexpr int64_t kStripe = 64;

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
  REQUANT_ASSIGN_OR_RETURN(
      problem.objective,
      rounding::MakeObjective(moments, rows, options.threads));
  problem.weights = {weights.data(), rows, columns};
  problem.options = options;
  return Solve(problem);
}

}  // namespace requant
