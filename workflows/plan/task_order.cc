#include "workflows/plan/task_order.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <vector>

namespace requant {
namespace {

// Some cycle among the tasks that `waits` marks; each of them waits for another
// one of them.
std::vector<int> FindCycle(const std::vector<std::vector<int>>& after,
                           const std::vector<bool>& waits) {
  std::vector<int> path;
  std::vector<int> place(after.size(), -1);
  int task = static_cast<int>(std::find(waits.begin(), waits.end(), true) -
                              waits.begin());
  while (place[task] < 0) {
    place[task] = static_cast<int>(path.size());
    path.push_back(task);
    task = *std::find_if(after[task].begin(), after[task].end(),
                         [&](int other) { return waits[other]; });
  }
  path.erase(path.begin(), path.begin() + place[task]);
  // From the first of them, so that the same cycle is always told alike.
  std::rotate(path.begin(), std::min_element(path.begin(), path.end()),
              path.end());
  return path;
}

}  // namespace

TaskOrder FindOrder(const std::vector<std::vector<int>>& after) {
  const int count = static_cast<int>(after.size());
  std::vector<std::vector<int>> waiting(count);
  std::vector<int> missing(count);
  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  for (int task = 0; task < count; ++task) {
    missing[task] = static_cast<int>(after[task].size());
    if (missing[task] == 0) ready.push(task);
    for (const int other : after[task]) waiting[other].push_back(task);
  }
  TaskOrder result;
  std::vector<bool> waits(count, true);
  while (!ready.empty()) {
    const int task = ready.top();
    ready.pop();
    waits[task] = false;
    result.order.push_back(task);
    for (const int other : waiting[task]) {
      if (--missing[other] == 0) ready.push(other);
    }
  }
  if (static_cast<int>(result.order.size()) < count) {
    result.order.clear();
    result.cycle = FindCycle(after, waits);
  }
  return result;
}

}  // namespace requant
