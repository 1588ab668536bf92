#include "base/testing/golden_cases.h"
#include "google/protobuf/text_format.h"
#include "graph/testing/testing.h"

namespace requant::graph_text_test {
namespace {

TEST(GraphText, WritesNodesConstantsAndFunctions) {
  CheckGoldenCases("graph/graph_text_cases.txt", [](const std::string& lines) {
    google::protobuf::TextFormat::Printer printer;
    printer.SetUseShortRepeatedPrimitives(true);
    std::string text;
    EXPECT_TRUE(printer.PrintToString(GraphFromText(lines), &text));
    text.pop_back();
    return text;
  });
}

}  // namespace
}  // namespace requant::graph_text_test
