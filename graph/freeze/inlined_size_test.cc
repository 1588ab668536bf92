#include "graph/freeze/inlined_size.h"

#include <cstdint>

#include "graph/testing/testing.h"

namespace requant::inlined_size_test {
namespace {

using tensorflow::FunctionDef;

constexpr int64_t kLimit = 1'000'000'000;

int64_t SizeOf(const std::string& text, int64_t limit = kLimit) {
  const GraphDef graph = GraphFromText(text);
  const auto called = [&graph](const NodeDef& node) -> const FunctionDef* {
    const auto f = node.attr().find("f");
    if (f == node.attr().end()) return nullptr;
    for (const FunctionDef& function : graph.library().function()) {
      if (function.signature().name() == f->second.func().name()) {
        return &function;
      }
    }
    return nullptr;
  };
  return InlinedSize(graph, {"y"}, called, limit);
}

std::string Relu(const std::string& name, const std::string& input) {
  return Node(name, "Relu", {input}, {kFloat});
}

// A function that calls another twice, one call after the other.
std::string Twice(const std::string& name, const std::string& callee) {
  return Function(name, {"a"}, {{"r", "d:output:0"}},
                  Call("c", callee, {"a"}) + Call("d", callee, {"c:output:0"}));
}

TEST(InlinedSize, CountsABodyForEachCall) {
  const std::string f =
      Function("f", {"a"}, {{"r", "r:activations:0"}}, Relu("r", "a"));
  EXPECT_EQ(SizeOf(absl::StrCat(Placeholder("x"), Relu("y", "x"))), 2);
  EXPECT_EQ(SizeOf(absl::StrCat(Placeholder("x"), Call("y", "g", {"x"}),
                                Library({f, Twice("g", "f")}))),
            2 + 2 + 2);
}

TEST(InlinedSize, LeavesOutCallsThatNothingNeeds) {
  const std::string f =
      Function("f", {"a"}, {{"r", "r:activations:0"}},
               Relu("r", "a") + Call("dead", "h", {"r:activations:0"}));
  const std::string h = Function("h", {"a"}, {{"r", "r:activations:0"}},
                                 Relu("r", "a") + Relu("s", "a"));
  EXPECT_EQ(SizeOf(absl::StrCat(Placeholder("x"), Call("y", "f", {"x"}),
                                Call("dead", "h", {"x"}), Library({f, h}))),
            3 + 2);
}

TEST(InlinedSize, StopsAtTheLimitHoweverOftenFunctionsCall) {
  std::vector<std::string> functions = {
      Function("f0", {"a"}, {{"r", "r:activations:0"}}, Relu("r", "a"))};
  for (int i = 1; i <= 200; ++i) {
    functions.push_back(Twice(absl::StrCat("f", i), absl::StrCat("f", i - 1)));
  }
  const std::string library = Library(functions);
  // Bodies of 2 nodes, doubling, and 1024 Relus.
  EXPECT_EQ(
      SizeOf(absl::StrCat(Placeholder("x"), Call("y", "f10", {"x"}), library)),
      2 + 2 * 1023 + 1024);
  EXPECT_EQ(
      SizeOf(absl::StrCat(Placeholder("x"), Call("y", "f200", {"x"}), library)),
      kLimit);
}

TEST(InlinedSize, EndsWhereFunctionsCallThemselves) {
  EXPECT_EQ(SizeOf(absl::StrCat(Placeholder("x"), Call("y", "f", {"x"}),
                                Library({Twice("f", "g"), Twice("g", "f")}))),
            2 + 2 + 2 + 2);
}

}  // namespace
}  // namespace requant::inlined_size_test
