#include "transforms/layers/layer_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/graph_index.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace requant::layer_report_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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
  tensorflow::GraphDef graph;
  graph.add_node()->set_name("dense/MatMul");
  const GraphIndex index = GraphIndex::Create(&graph).value();
  std::vector<std::string> warnings;
  FloatLayerOptions options;
  options.excluded_nodes = {"dense/MatMull"};
  const absl::Status status = CheckExcluded(options, index, &warnings);
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"dense/MatMul\""));
}

TEST(CheckExcluded, WarnsOfATypeThatNoNodeHas) {
  tensorflow::GraphDef graph;
  graph.add_node()->set_name("x");
  graph.mutable_node(0)->set_op("Placeholder");
  const GraphIndex index = GraphIndex::Create(&graph).value();
  std::vector<std::string> warnings;
  FloatLayerOptions options;
  options.excluded_ops = {"MatMul", "Placeholder"};
  EXPECT_TRUE(CheckExcluded(options, index, &warnings).ok());
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("MatMul")));
}

}  // namespace
}  // namespace requant::layer_report_test
