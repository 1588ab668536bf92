#include "graph/node_order.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace requant {
namespace {

// The consumers of every node, in the layout of NodeInputs.
NodeInputs Reverse(const NodeInputs& inputs) {
  const int32_t count = inputs.node_count();
  NodeInputs consumers;
  consumers.first.assign(count + 1, 0);
  for (const int32_t producer : inputs.producer) {
    if (producer >= 0) ++consumers.first[producer + 1];
  }
  for (int32_t i = 0; i < count; ++i) {
    consumers.first[i + 1] += consumers.first[i];
  }
  consumers.producer.resize(consumers.first[count]);
  std::vector<int64_t> next(consumers.first.begin(), consumers.first.end() - 1);
  for (int32_t i = 0; i < count; ++i) {
    for (int64_t e = inputs.first[i]; e < inputs.first[i + 1]; ++e) {
      const int32_t producer = inputs.producer[e];
      if (producer >= 0) consumers.producer[next[producer]++] = i;
    }
  }
  return consumers;
}

// Walks against the data from every node that waits (`waiting` > 0), always to
// the first producer that waits too; such a walk ends in a cycle or in what an
// earlier walk has seen.
std::vector<std::vector<int32_t>> FindCycles(
    const NodeInputs& inputs, const std::vector<int32_t>& waiting) {
  std::vector<std::vector<int32_t>> cycles;
  std::vector<int32_t> walk_of(inputs.node_count(), -1);
  for (int32_t start = 0; start < inputs.node_count(); ++start) {
    if (waiting[start] == 0) continue;
    std::vector<int32_t> path;
    int32_t at = start;
    while (walk_of[at] < 0) {
      walk_of[at] = start;
      path.push_back(at);
      int64_t edge = inputs.first[at];
      while (inputs.producer[edge] < 0 || waiting[inputs.producer[edge]] == 0) {
        ++edge;
      }
      at = inputs.producer[edge];
    }
    if (walk_of[at] != start) continue;
    cycles.emplace_back(std::find(path.begin(), path.end(), at), path.end());
    std::reverse(cycles.back().begin(), cycles.back().end());
  }
  return cycles;
}

}  // namespace

NodeOrder SortNodes(const NodeInputs& inputs) {
  const int32_t count = inputs.node_count();
  const NodeInputs consumers = Reverse(inputs);
  NodeOrder order;
  order.sorted.reserve(count);
  std::vector<int32_t> waiting(count, 0);
  for (int32_t i = 0; i < count; ++i) {
    for (int64_t e = inputs.first[i]; e < inputs.first[i + 1]; ++e) {
      if (inputs.producer[e] >= 0) ++waiting[i];
    }
    if (waiting[i] == 0) order.sorted.push_back(i);
  }
  for (size_t done = 0; done < order.sorted.size(); ++done) {
    const int32_t node = order.sorted[done];
    for (int64_t e = consumers.first[node]; e < consumers.first[node + 1];
         ++e) {
      const int32_t consumer = consumers.producer[e];
      if (--waiting[consumer] == 0) order.sorted.push_back(consumer);
    }
  }
  if (order.sorted.size() < static_cast<size_t>(count)) {
    order.cycles = FindCycles(inputs, waiting);
  }
  return order;
}

}  // namespace requant
