#ifndef REQUANT_WORKFLOWS_PLAN_TASK_ORDER_H_
#define REQUANT_WORKFLOWS_PLAN_TASK_ORDER_H_

#include <vector>

namespace requant {

struct TaskOrder {
  // Every task behind all that it waits for, otherwise in the order given.
  std::vector<int> order;
  // Unless there is an order: tasks that wait for each other, each for the next
  // and the last for the first.
  std::vector<int> cycle;
};

// `after` lists for each task those that it waits for.
TaskOrder FindOrder(const std::vector<std::vector<int>>& after);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_PLAN_TASK_ORDER_H_
