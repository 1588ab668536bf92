#include "graph/graph_index.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace requant {
namespace {

// How many nodes ahead the hash table's memory is prefetched: in a graph of a
// million nodes every lookup would otherwise wait for it.
constexpr int kLookAhead = 8;

}  // namespace

using tensorflow::GraphDef;
using tensorflow::NodeDef;

TensorName ParseTensorName(std::string_view input) {
  if (!input.empty() && input[0] == '^') {
    return {input.substr(1), kControlPort};
  }
  size_t digits = input.size();
  while (digits > 0 && input[digits - 1] >= '0' && input[digits - 1] <= '9') {
    --digits;
  }
  int port;
  if (digits > 0 && digits < input.size() && input[digits - 1] == ':' &&
      absl::SimpleAtoi(input.substr(digits), &port)) {
    return {input.substr(0, digits - 1), port};
  }
  return {input, 0};
}

int64_t CountNodes(const tensorflow::GraphDef& graph) {
  int64_t count = graph.node_size();
  for (const tensorflow::FunctionDef& function : graph.library().function()) {
    count += function.node_def_size();
  }
  return count;
}

std::string FormatTensorName(std::string_view node, int port) {
  if (port == kControlPort) return absl::StrCat("^", node);
  if (port == 0) return std::string(node);
  return absl::StrCat(node, ":", port);
}

absl::StatusOr<GraphIndex> GraphIndex::Create(GraphDef* graph) {
  GraphIndex index(graph);
  const int count = graph->node_size();
  index.ids_.reserve(count);
  index.nodes_.reserve(count);
  size_t edge_count = 0;
  for (int i = 0; i < count; ++i) {
    if (i + kLookAhead < count) {
      index.ids_.prefetch(graph->node(i + kLookAhead).name());
    }
    NodeDef* node = graph->mutable_node(i);
    if (node->name().empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "node number ", i, " (op ", node->op(), ") has no name"));
    }
    if (!index.ids_.emplace(node->name(), i).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two nodes are named \"", node->name(), "\""));
    }
    index.nodes_.push_back(node);
    edge_count += node->input_size();
  }
  index.edges_.reserve(edge_count);
  index.first_edge_.resize(count);
  index.first_use_.assign(count, -1);
  for (int i = 0; i < count; ++i) {
    if (i + kLookAhead < count) {
      for (const std::string& input : graph->node(i + kLookAhead).input()) {
        index.ids_.prefetch(ParseTensorName(input).node);
      }
    }
    index.AppendEdges(i);
  }
  return index;
}

int32_t GraphIndex::IdOf(std::string_view name) const {
  const auto found = ids_.find(name);
  return found == ids_.end() ? -1 : found->second;
}

void GraphIndex::AppendEdges(int32_t id) {
  first_edge_[id] = edges_.size();
  const NodeDef& node = *nodes_[id];
  for (int i = 0; i < node.input_size(); ++i) {
    edges_.push_back(
        {id, i, IdOf(ParseTensorName(node.input(i)).node), -1, -1});
    LinkEdge(edges_.size() - 1);
  }
}

void GraphIndex::LinkEdge(int32_t edge) {
  const int32_t producer = edges_[edge].producer;
  if (producer < 0) return;
  const int32_t head = first_use_[producer];
  edges_[edge].previous = -1;
  edges_[edge].next = head;
  if (head >= 0) edges_[head].previous = edge;
  first_use_[producer] = edge;
}

void GraphIndex::UnlinkEdge(int32_t edge) {
  Edge& e = edges_[edge];
  if (e.producer < 0) return;
  if (e.previous >= 0) {
    edges_[e.previous].next = e.next;
  } else {
    first_use_[e.producer] = e.next;
  }
  if (e.next >= 0) edges_[e.next].previous = e.previous;
  e.producer = -1;
}

NodeDef* GraphIndex::Find(std::string_view name) const {
  const int32_t id = IdOf(name);
  return id < 0 ? nullptr : nodes_[id];
}

NodeDef* GraphIndex::Producer(const NodeDef& node, int input) const {
  if (input < 0 || input >= node.input_size()) return nullptr;
  return Find(ParseTensorName(node.input(input)).node);
}

std::vector<Use> GraphIndex::Uses(std::string_view name) const {
  std::vector<Use> uses;
  const int32_t id = IdOf(name);
  if (id < 0) return uses;
  for (int32_t e = first_use_[id]; e >= 0; e = edges_[e].next) {
    NodeDef* consumer = nodes_[edges_[e].consumer];
    const int input = edges_[e].input;
    uses.push_back(
        {consumer, input, ParseTensorName(consumer->input(input)).port});
  }
  return uses;
}

bool GraphIndex::HasUses(std::string_view name) const {
  const int32_t id = IdOf(name);
  return id >= 0 && first_use_[id] >= 0;
}

absl::StatusOr<NodeDef*> GraphIndex::Add(NodeDef node) {
  if (node.name().empty()) {
    return absl::InvalidArgumentError("a node to be added has no name");
  }
  if (IdOf(node.name()) >= 0) {
    return absl::AlreadyExistsError(absl::StrCat(
        "the graph already has a node named \"", node.name(), "\""));
  }
  NodeDef* added = graph_->add_node();
  *added = std::move(node);
  const int32_t id = nodes_.size();
  ids_.emplace(added->name(), id);
  nodes_.push_back(added);
  first_edge_.push_back(0);
  first_use_.push_back(-1);
  AppendEdges(id);
  return added;
}

std::string GraphIndex::FreeName(const std::string& base) const {
  std::string name = base;
  for (int i = 1; IdOf(name) >= 0; ++i) name = absl::StrCat(base, "_", i);
  return name;
}

absl::Status GraphIndex::Remove(std::string_view name) {
  const int32_t id = IdOf(name);
  if (id < 0) {
    return absl::NotFoundError(absl::StrCat("no node named \"", name, "\""));
  }
  if (first_use_[id] >= 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("node \"", name, "\" is still read by \"",
                     nodes_[edges_[first_use_[id]].consumer]->name(), "\""));
  }
  NodeDef* node = nodes_[id];
  for (int i = 0; i < node->input_size(); ++i) UnlinkEdge(first_edge_[id] + i);
  ids_.erase(node->name());
  nodes_[id] = nullptr;
  removed_any_ = true;
  return absl::OkStatus();
}

void GraphIndex::RelinkInput(int32_t id, int input) {
  const int32_t edge = first_edge_[id] + input;
  UnlinkEdge(edge);
  edges_[edge].producer = IdOf(ParseTensorName(nodes_[id]->input(input)).node);
  LinkEdge(edge);
}

void GraphIndex::SetInput(NodeDef* node, int input, std::string value) {
  node->set_input(input, std::move(value));
  RelinkInput(IdOf(node->name()), input);
}

void GraphIndex::SetInputs(NodeDef* node, std::vector<std::string> values) {
  const int32_t id = IdOf(node->name());
  for (int i = 0; i < node->input_size(); ++i) UnlinkEdge(first_edge_[id] + i);
  node->clear_input();
  for (std::string& value : values) node->add_input(std::move(value));
  AppendEdges(id);
}

void GraphIndex::RedirectUses(TensorName from, TensorName to,
                              const NodeDef* except) {
  const std::string value = FormatTensorName(to.node, to.port);
  for (const Use& use : Uses(from.node)) {
    if (use.port == from.port && use.node != except) {
      SetInput(use.node, use.input, value);
    }
  }
}

void GraphIndex::Commit() {
  if (!removed_any_) return;
  // Until now node number i of the graph is nodes_[i].
  auto* nodes = graph_->mutable_node();
  int kept = 0;
  for (int i = 0; i < nodes->size(); ++i) {
    if (nodes_[i] == nullptr) continue;
    if (i != kept) nodes->SwapElements(i, kept);
    ++kept;
  }
  nodes->DeleteSubrange(kept, nodes->size() - kept);
  removed_any_ = false;
}

}  // namespace requant
