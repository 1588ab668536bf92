#include "transforms/layers/column_plan.h"

#include "graph/testing/testing.h"

namespace requant::column_plan_test {
namespace {

PlannedColumn Column(double step, double largest_weight, bool may_repeat) {
  PlannedColumn column;
  column.step = step;
  column.deviation = 50 * step;
  column.largest_weight = largest_weight;
  column.squared_weights = 100 * largest_weight * largest_weight / 9;
  column.may_repeat = may_repeat;
  return column;
}

ColumnPlanOptions Options(int most_added) {
  ColumnPlanOptions options;
  options.outputs = 100;
  options.most_added = most_added;
  return options;
}

TEST(PlanColumns, RepeatsNothingWhereAllColumnsAreAlike) {
  const std::vector<PlannedColumn> columns(20, Column(0.01, 0.2, true));
  EXPECT_THAT(PlanColumns(columns, Options(16)).copies, Each(1));
}

TEST(PlanColumns, RepeatsAColumnThatMakesTheWeightsOfTheOthersCoarse) {
  std::vector<PlannedColumn> columns(20, Column(0.01, 0.2, false));
  columns.push_back(Column(0.01, 0.6, true));
  const ColumnPlan plan = PlanColumns(columns, Options(16));
  // 0.6 / 4 is the first below three quarters of 0.2.
  EXPECT_EQ(plan.copies.back(), 4);
  EXPECT_THAT(std::vector<int>(plan.copies.begin(), plan.copies.end() - 1),
              Each(1));
}

TEST(PlanColumns, LowersTheExpectedError) {
  std::vector<PlannedColumn> columns(20, Column(0.01, 0.2, false));
  columns.push_back(Column(0.01, 0.6, true));
  EXPECT_LT(PlanColumns(columns, Options(16)).expected_error,
            0.5 * PlanColumns(columns, Options(0)).expected_error);
}

TEST(PlanColumns, NeverRepeatsWhatMayNotBeRepeated) {
  const std::vector<PlannedColumn> columns = {Column(0.01, 0.2, false),
                                              Column(0.01, 0.9, false),
                                              Column(0.01, 0.1, false)};
  EXPECT_THAT(PlanColumns(columns, Options(16)).copies, ElementsAre(1, 1, 1));
}

TEST(PlanColumns, AddsNoMoreThanAllowed) {
  std::vector<PlannedColumn> columns(20, Column(0.01, 0.2, false));
  columns.push_back(Column(0.01, 0.6, true));
  EXPECT_EQ(PlanColumns(columns, Options(2)).copies.back(), 2);
  EXPECT_EQ(PlanColumns(columns, Options(0)).copies.back(), 1);
}

TEST(PlanColumns, RepeatsAllThatMayBeSoOftenAtLeast) {
  std::vector<PlannedColumn> columns(20, Column(0.01, 0.2, false));
  columns.push_back(Column(0.01, 0.6, true));
  columns.push_back(Column(0.01, 0.05, true));
  ColumnPlanOptions options = Options(16);
  options.least_copies = 4;
  const ColumnPlan plan = PlanColumns(columns, options);
  EXPECT_EQ(plan.copies[20], 4);
  EXPECT_EQ(plan.copies[21], 4);
}

TEST(PlanColumns, RepeatsLessOftenWhereTheLimitDoesNotAllowMore) {
  std::vector<PlannedColumn> columns(20, Column(0.01, 0.2, false));
  columns.push_back(Column(0.01, 0.6, true));
  columns.push_back(Column(0.01, 0.05, true));
  ColumnPlanOptions options = Options(4);
  options.least_copies = 4;
  EXPECT_EQ(PlanColumns(columns, options).copies[21], 2);
}

TEST(PlanColumns, StandsColumnsWithoutWeightsOrSpread) {
  PlannedColumn idle = Column(1, 0, true);
  idle.deviation = 0;
  EXPECT_THAT(PlanColumns({idle, idle}, Options(16)).copies, ElementsAre(1, 1));
}

}  // namespace
}  // namespace requant::column_plan_test
