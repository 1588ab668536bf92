#ifndef REQUANT_TRANSFORMS_EIGHTBIT_COLUMN_PLAN_H_
#define REQUANT_TRANSFORMS_EIGHTBIT_COLUMN_PLAN_H_

// Plans how finely to quantize each input column of a layer.
//
// With one range for all columns, the widest column sets the step for all.
// Instead each column k gets a step of its own, s_k, and the weights absorb the
// differences: x_k·w_k = code_k·(s_k·w_k). But all weights also share one step,
// u, and a column with a wide range and large weights makes that coarse. Such a
// column is passed to the layer n_k times, each time with 1/n_k of its weight
// and a different rounding offset, so that both its value and its weight are
// resolved n_k times as finely.
//
// The expected squared error of the layer's sums, from inputs and weights, is
//
//   Σ_k |w_k|²·s_k²/(12·n_k²) + N·u²/12·Σ_k (d_k/s_k)²,
//   u = max_k(max|w_k|·s_k/n_k) / levels, d_k the column's deviation.

#include <vector>

namespace requant {

// A column of the input, with the layer's weights for it.
struct PlannedColumn {
  double step = 0;
  double deviation = 0;  // of the column's values
  double largest_weight = 0;
  double squared_weights = 0;  // |w_k|²
  // Whether it may be repeated. A column that comes already in eight bits, from
  // a table or another layer, may not: its codes are fixed.
  bool may_repeat = false;
};

struct ColumnPlanOptions {
  int outputs = 1;  // N
  int levels = 127;
  // How many columns may be added in all, and how often one may be used.
  int most_added = 0;
  int most_copies = 16;
  // If any column is repeated, all that may be are, at least this often if
  // allowed: the formula cannot know that a column that is itself an input of
  // the model matters more than one dimension of an embedding.
  int least_copies = 1;
};

struct ColumnPlan {
  // The copies of each column; 1 if it is not repeated.
  std::vector<int> copies;
  double expected_error = 0;
};

// Returns the fewest copies, within the limits, with which the expected error
// is nearly as small as it gets.
ColumnPlan PlanColumns(const std::vector<PlannedColumn>& columns,
                       const ColumnPlanOptions& options);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_EIGHTBIT_COLUMN_PLAN_H_
