#include "runtime/calibration/calibration_report.h"

#include "base/testing/testing.h"

namespace requant::calibration_report_test {
namespace {

RangeEntry EntryOf(const std::vector<float>& maxs, int64_t records) {
  RangeEntry entry;
  entry.histogram.emplace();
  for (float max : maxs) {
    entry.AddRange(-1, max, {});
    entry.histogram->Add(std::vector<float>{-1, max});
  }
  entry.records = records;
  return entry;
}

std::string TextOf(const RangeTable& table, int64_t batch_size,
                   RangeMethod method = RangeMethod::kMinMax) {
  RangeChoiceOptions choice;
  choice.method = method;
  return CalibrationText(table, choice, batch_size).value();
}

TEST(CalibrationText, ShowsRangesAndWhenTheySettled) {
  RangeTable table;
  table.FindOrAdd("layer/Relu") = EntryOf({2, 4, 3, 1}, 35);
  EXPECT_EQ(TextOf(table, 10),
            "                                          by minmax   settled\n"
            "         min          max         from           to   records  "
            "tensor\n"
            "          -1            4           -1            4        20  "
            "layer/Relu:0\n"
            "1 range, within 1 % of the final width after 20 of 35 records\n");
}

TEST(CalibrationText, CountsBatchesWhereTheirSizeIsNotKnown) {
  RangeTable table;
  table.FindOrAdd("x") = EntryOf({2, 4, 3, 1}, 0);
  EXPECT_THAT(TextOf(table, 0), HasSubstr("after 2 of 4 batches"));
}

TEST(CalibrationText, SaysWhatStillMoves) {
  RangeTable table;
  table.FindOrAdd("x") = EntryOf({2, 4}, 20);
  EXPECT_THAT(TextOf(table, 10),
              AllOf(HasSubstr("moving  x:0"),
                    HasSubstr("1 still moved at the end of 20 records")));
}

TEST(CalibrationText, ChoosesByMinMaxWhereThereIsNoHistogram) {
  RangeTable table;
  table.FindOrAdd("min").AddMin(-3, {});
  EXPECT_THAT(TextOf(table, 10, RangeMethod::kMse),
              HasSubstr("          -3            -           -3            -"));
}

TEST(CalibrationWarnings, NamesValuesThatAreNotFinite) {
  RangeTable table;
  table.FindOrAdd("x") = EntryOf({2, 2}, 20);
  EXPECT_THAT(CalibrationWarnings(table), IsEmpty());
  table.FindOrAdd("x").not_finite.Add(3, "tensor x:0 record 5");
  EXPECT_THAT(CalibrationWarnings(table),
              ElementsAre(AllOf(HasSubstr("3 values not finite"),
                                HasSubstr("tensor x:0 record 5"))));
}

TEST(CalibrationWarnings, NamesRangesThatStillMove) {
  RangeTable table;
  for (const char* name : {"a", "b", "c", "d"}) {
    table.FindOrAdd(name) = EntryOf({2, 4}, 20);
  }
  EXPECT_THAT(CalibrationWarnings(table),
              ElementsAre(AllOf(HasSubstr("4 ranges still moved"),
                                HasSubstr("a:0, b:0, c:0 and 1 more"))));
}

}  // namespace
}  // namespace requant::calibration_report_test
