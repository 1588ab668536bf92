#include "base/terminal/table.h"

#include <gtest/gtest.h>

namespace requant::table_test {
namespace {

Table Fruits() {
  Table table;
  table.AddColumn("name", Table::kAlways, /*left=*/true);
  table.AddColumn("count", 2);
  table.AddColumn("price", 1);
  table.AddColumn("note", 3);
  table.AddRow({{"apple"}, {"12"}, {"0.25"}, {""}});
  table.AddRow({{"kumquat"}, {"7"}, {""}, {""}});
  return table;
}

TEST(Table, HasAColumnForWhatHasText) {
  EXPECT_EQ(Fruits().Text(0, false),
            "name     count  price\n"
            "apple       12   0.25\n"
            "kumquat      7\n");
}

TEST(Table, LeavesTheLeastImportantColumnsOutFirst) {
  EXPECT_EQ(Fruits().Text(21, false), Fruits().Text(0, false));
  EXPECT_EQ(Fruits().Text(20, false),
            "name     count\n"
            "apple       12\n"
            "kumquat      7\n");
}

TEST(Table, CutsNoCellHoweverNarrowTheTerminal) {
  EXPECT_EQ(Fruits().Text(3, false), "name\napple\nkumquat\n");
}

TEST(Table, ColoursCellsWhenAsked) {
  Table table;
  table.AddColumn("verdict", Table::kAlways);
  table.AddRow({{"FAIL", Style::kBad}});
  EXPECT_EQ(table.Text(0, false), "verdict\n   FAIL\n");
  EXPECT_NE(table.Text(0, true).find("\x1b[31m"), std::string::npos);
}

}  // namespace
}  // namespace requant::table_test
