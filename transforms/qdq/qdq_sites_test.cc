#include "transforms/qdq/qdq_sites.h"

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/substitute.h"
#include "base/status_macros.h"
#include "base/testing/golden_cases.h"
#include "graph/graph_index.h"
#include "graph/testing/testing.h"

namespace requant::qdq_sites_test {
namespace {

std::string KeyText(const RangeKey& key) {
  return absl::StrCat(key.first, ":", key.second);
}

absl::StatusOr<std::vector<std::string>> ShowSites(
    const GraphDef& graph, const QdqSiteOptions& options) {
  REQUANT_ASSIGN_OR_RETURN(const QdqSites found, FindQdqSites(graph, options));
  std::vector<std::string> lines;
  for (const QdqSite& site : found.sites) {
    lines.push_back(absl::StrCat(
        site.node, site.function.empty() ? "" : " of ", site.function, "[",
        site.input, "] ", KeyText(site.range),
        site.is_weight ? " (weight)" : "", site.reached ? "" : " (unreached)"));
  }
  if (found.already_quantized > 0) {
    lines.push_back(
        absl::StrCat(found.already_quantized, " already quantized"));
  }
  for (const std::string& left : found.skipped)
    lines.push_back("left: " + left);
  return lines;
}

// Expects that names are unique and every input exists in the graph that the
// session has after the extension.
void ExpectExtends(const GraphDef& graph, const GraphDef& added) {
  GraphDef extended = graph;
  extended.MergeFrom(added);
  const std::vector<std::string> names = NodesOf(extended);
  EXPECT_THAT(names, testing::WhenSorted(testing::ElementsAreArray(
                         std::set<std::string>(names.begin(), names.end()))));
  for (const NodeDef& node : added.node()) {
    for (const std::string& input : node.input()) {
      EXPECT_THAT(names, Contains(NodeOf(input)));
    }
  }
}

// Shows what is observed and by which tensors; what is not observed, with "?"
// if it runs conditionally; and the added nodes.
absl::StatusOr<std::vector<std::string>> ShowObservers(
    const GraphDef& graph, const QdqSiteOptions& options,
    const std::string& output) {
  REQUANT_ASSIGN_OR_RETURN(const QdqObservers made,
                           MakeQdqObservers(graph, options, {output}));
  ExpectExtends(graph, made.added);
  std::vector<std::string> lines;
  for (const QdqObserver& observer : made.observers) {
    lines.push_back(absl::StrCat(KeyText(observer.range),
                                 observer.is_weight ? " (weight)" : "", " by ",
                                 absl::StrJoin(observer.tensors, ", ")));
  }
  for (const NotObserved& key : made.not_observed) {
    lines.push_back(
        absl::StrCat("not ", KeyText(key.range), key.is_needed ? "?" : ""));
  }
  for (const NodeDef& node : made.added.node()) {
    lines.push_back(absl::StrCat(node.name(), " = ", node.op(), "(",
                                 absl::StrJoin(node.input(), ", "), ")"));
  }
  return lines;
}

absl::StatusOr<std::vector<std::string>> Show(std::string input) {
  const auto settings = TakeSettings("", &input);
  const auto setting = [&](const std::string& name) {
    const auto found = settings.find(name);
    return found == settings.end() ? "" : found->second;
  };
  QdqSiteOptions options;
  options.ops = absl::StrSplit(setting("ops"), ',', absl::SkipEmpty());
  if (!setting("inputs").empty()) {
    REQUANT_ASSIGN_OR_RETURN(options.inputs, ParseQdqInputs(setting("inputs")));
  }
  const GraphDef graph = GraphFromText(input);
  return setting("output").empty()
             ? ShowSites(graph, options)
             : ShowObservers(graph, options, setting("output"));
}

TEST(QdqSites, AreThoseOfTheCases) {
  CheckGoldenCases("transforms/qdq/qdq_cases.txt", [](const std::string& in) {
    const auto lines = Show(in);
    return lines.ok() ? absl::StrJoin(*lines, "\n")
                      : std::string(lines.status().message());
  });
}

// These 33 kB of functions stand for more nodes than any memory holds.
TEST(QdqObservers, RefuseFunctionsThatStandForTooManyNodes) {
  std::string lines = R"(
    x = Placeholder dtype=float
    y = PartitionedCall(x) f=@f40 Tin=[float] Tout=[float]
    function f0(a) -> (r=m:product:0) {
      m = MatMul(a, a) T=float
    }
  )";
  for (int i = 0; i < 40; ++i) {
    absl::StrAppend(&lines, absl::Substitute(R"(
      function f$1(a) -> (r=d:output:0) {
        c = PartitionedCall(a) f=@f$0 Tin=[float] Tout=[float]
        d = PartitionedCall(c:output:0) f=@f$0 Tin=[float] Tout=[float]
      }
    )",
                                             i, i + 1));
  }
  EXPECT_THAT(
      MakeQdqObservers(GraphFromText(lines), {}, {"y"}),
      FailsWith(HasSubstr(
          "with its functions inlined the graph has more than 1000000 nodes")));
}

}  // namespace
}  // namespace requant::qdq_sites_test
