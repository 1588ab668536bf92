#include "transforms/eightbit/column_plan.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace requant {
namespace {

// How large the weights of repeated columns may be, as a share of the largest
// other weight. The share is below 1 because repeated columns may be adjacent,
// and two adjacent weights may not both be large (quantized_weights.h).
constexpr double kShareOfLargest = 0.75;

// More columns cost time; a plan this close to the best one is good enough.
constexpr double kGoodEnough = 1.1;

double Demand(const PlannedColumn& column) {
  return column.largest_weight * column.step;
}

double ExpectedError(const std::vector<PlannedColumn>& columns,
                     const std::vector<int>& copies,
                     const ColumnPlanOptions& options) {
  double inputs = 0, spread = 0, largest = 0;
  for (size_t k = 0; k < columns.size(); ++k) {
    const PlannedColumn& column = columns[k];
    const double fine_step = column.step / copies[k];
    inputs += column.squared_weights * fine_step * fine_step;
    const double codes = column.deviation / column.step;
    spread += codes * codes;
    largest = std::max(largest, Demand(column) / copies[k]);
  }
  const double weight_step = largest / options.levels;
  return (inputs + options.outputs * weight_step * weight_step * spread) / 12;
}

// Sets at least `least` copies of every column that may be repeated, and enough
// that no column demands more than `limit`. Returns how many columns that adds,
// or -1 if a column needs too many.
int CopiesFor(const std::vector<PlannedColumn>& columns, double limit,
              int least, int most, std::vector<int>* copies) {
  int added = 0;
  for (size_t k = 0; k < columns.size(); ++k) {
    (*copies)[k] = 1;
    if (!columns[k].may_repeat) continue;
    const double needed =
        std::max<double>(least, std::ceil(Demand(columns[k]) / limit - 1e-9));
    if (!(needed <= most)) return -1;
    (*copies)[k] = static_cast<int>(needed);
    added += (*copies)[k] - 1;
  }
  return added;
}

// Returns the limits worth trying: each column's demand at each number of
// copies, and a little less than the other columns demand.
std::vector<double> Limits(const std::vector<PlannedColumn>& columns,
                           int most_copies) {
  double others = 0;
  for (const PlannedColumn& column : columns) {
    if (!column.may_repeat) others = std::max(others, Demand(column));
  }
  const double below = kShareOfLargest * others;
  std::vector<double> limits = {below, below * kShareOfLargest};
  for (const PlannedColumn& column : columns) {
    if (!column.may_repeat) continue;
    for (int copies = 1; copies <= most_copies; ++copies) {
      const double limit = Demand(column) / copies;
      if (limit < below || limit * kShareOfLargest > others) {
        limits.push_back(limit);
      }
    }
  }
  std::sort(limits.begin(), limits.end());
  limits.erase(std::unique(limits.begin(), limits.end()), limits.end());
  return limits;
}

}  // namespace

ColumnPlan PlanColumns(const std::vector<PlannedColumn>& columns,
                       const ColumnPlanOptions& options) {
  struct Candidate {
    int added;
    ColumnPlan plan;
  };
  std::vector<int> copies(columns.size(), 1);
  std::vector<Candidate> candidates = {
      {0, {copies, ExpectedError(columns, copies, options)}}};
  double least_error = candidates[0].plan.expected_error;
  const std::vector<double> limits = Limits(columns, options.most_copies);
  for (int least = options.least_copies; least >= 1; least /= 2) {
    for (const double limit : limits) {
      if (!(limit > 0)) continue;
      const int added =
          CopiesFor(columns, limit, least, options.most_copies, &copies);
      if (added <= 0 || added > options.most_added) continue;
      const double error = ExpectedError(columns, copies, options);
      least_error = std::min(least_error, error);
      candidates.push_back({added, {copies, error}});
    }
    // Fewer copies of every column are tried only if these are too many.
    if (candidates.size() > 1) break;
  }
  const Candidate* best = nullptr;
  for (const Candidate& candidate : candidates) {
    if (candidate.plan.expected_error > kGoodEnough * least_error) continue;
    if (best == nullptr || candidate.added < best->added) best = &candidate;
  }
  return best->plan;
}

}  // namespace requant
