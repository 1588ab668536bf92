#include "runtime/datasets/printable.h"

#include <gtest/gtest.h>

namespace requant {
namespace {

TEST(Printable, EscapesControlCharactersAndNothingElse) {
  EXPECT_EQ(Printable("a\x1b[1m\n\"gr\xc3\xb6\xc3\x9f"
                      "e\" \x7f\xff"),
            "a\\x1b[1m\\x0a\"gr\xc3\xb6\xc3\x9f"
            "e\" \\x7f\xff");
}

TEST(Printable, KeepsAStatussCode) {
  EXPECT_EQ(Printable(absl::NotFoundError("no \t")),
            absl::NotFoundError("no \\x09"));
  EXPECT_EQ(Printable(absl::OkStatus()), absl::OkStatus());
}

}  // namespace
}  // namespace requant
