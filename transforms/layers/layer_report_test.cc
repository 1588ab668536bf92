#include "transforms/layers/layer_report.h"

#include "graph/graph_index.h"
#include "graph/testing/testing.h"

namespace requant::layer_report_test {
namespace {

TEST(LayerTable, AlignsItsColumns) {
  EXPECT_THAT(
      LayerTable({{"layer", {"size", "output"}},
                  {"dense", {"8 x 6", "quint8"}},
                  {"hidden/1", {"6 x 4", "float"}}}),
      ElementsAre("  layer     size   output",  //
                  "  dense     8 x 6  quint8", "  hidden/1  6 x 4  float"));
}

TEST(LayerTable, AlignsNamesOfSeveralBytesPerCharacter) {
  EXPECT_THAT(LayerTable({{"é", {"a"}}, {"ee", {"b"}}}),
              ElementsAre("  é   a", "  ee  b"));
}

TEST(CheckExcluded, SuggestsTheNameThatMayBeMeant) {
  GraphDef graph;
  graph.add_node()->set_name("dense/MatMul");
  const GraphIndex index = GraphIndex::Create(&graph).value();
  std::vector<std::string> warnings;
  FloatLayerOptions options;
  options.excluded_nodes = {"dense/MatMull"};
  EXPECT_THAT(CheckExcluded(options, index, &warnings),
              FailsWith(HasSubstr("\"dense/MatMul\"")));
}

TEST(CheckExcluded, WarnsOfATypeThatNoNodeHas) {
  GraphDef graph = GraphFromText("x = Placeholder");
  const GraphIndex index = GraphIndex::Create(&graph).value();
  std::vector<std::string> warnings;
  FloatLayerOptions options;
  options.excluded_ops = {"MatMul", "Placeholder"};
  EXPECT_OK(CheckExcluded(options, index, &warnings));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("MatMul")));
}

}  // namespace
}  // namespace requant::layer_report_test
