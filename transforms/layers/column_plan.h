#ifndef REQUANT_TRANSFORMS_LAYERS_COLUMN_PLAN_H_
#define REQUANT_TRANSFORMS_LAYERS_COLUMN_PLAN_H_

// How finely each column of a layer's input is quantized.
//
// With one range for all columns, the widest one sets everybody's step. Instead
// each column k gets a step of its own, s_k, and what differs goes into the
// weights: x_k·w_k = code_k·(s_k·w_k). But all weights share one step too, u,
// and a column with a wide range and large weights makes that coarse. Such a
// column is given to the layer n_k times, each time with an n-th of its weight,
// and rounded at another offset, so that both its value and its weight are
// resolved n_k times as finely.
//
// The expected squared error of the layer's sums, of inputs and of weights:
//
//   Σ_k |w_k|²·s_k²/(12·n_k²) + N·u²/12·Σ_k (d_k/s_k)²,
//   u = max_k(max|w_k|·s_k/n_k) / levels, d_k the column's deviation.

#include <vector>

namespace requant {

// A column of the input, with the layer's weights for it.
struct PlannedColumn {
  double step = 0;
  // Of the column's values.
  double deviation = 0;
  double largest_weight = 0;
  double squared_weights = 0;  // |w_k|²
  // Whether it may be repeated. What comes from a table or from another layer
  // in eight bits already may not: its codes are what they are.
  bool may_repeat = false;
};

struct ColumnPlanOptions {
  int outputs = 1;  // N
  int levels = 127;
  // How many columns may be added in all, and how often one may be used.
  int most_added = 0;
  int most_copies = 16;
  // If any is repeated, then all that may be, so often at least where that is
  // allowed: what the formula cannot know is that a column which is an input of
  // the model as such matters more than one dimension of an embedding.
  int least_copies = 1;
};

struct ColumnPlan {
  // One for each column; 1 where it is not repeated.
  std::vector<int> copies;
  double expected_error = 0;
};

// The fewest copies, within the limits, with which the expected error is nearly
// as small as it gets.
ColumnPlan PlanColumns(const std::vector<PlannedColumn>& columns,
                       const ColumnPlanOptions& options);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_LAYERS_COLUMN_PLAN_H_
