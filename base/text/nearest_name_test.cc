#include "base/text/nearest_name.h"

#include <gtest/gtest.h>

namespace requant::nearest_name_test {
namespace {

TEST(NearestName, FindsAMisspelling) {
  EXPECT_EQ(
      NearestName("fold_constant", {"fold_batch_norms", "fold_constants"}),
      "fold_constants");
}

TEST(NearestName, CountsASwapAsOneEdit) {
  EXPECT_EQ(NearestName("imn", {"max", "min"}), "min");
}

TEST(NearestName, StaysSilentWhenNothingIsNear) {
  EXPECT_EQ(NearestName("quantize", {"min", "max"}), "");
  EXPECT_EQ(DidYouMean("quantize", {}), "");
}

TEST(NearestName, TakesTheFirstOnATie) {
  EXPECT_EQ(NearestName("freeze_mxx", {"freeze_min", "freeze_max"}),
            "freeze_max");
  EXPECT_EQ(NearestName("abc", {"abd", "abe"}), "abd");
}

}  // namespace
}  // namespace requant::nearest_name_test
