#include "base/files/seal.h"

#include <gtest/gtest.h>

#include <string>

namespace requant::seal_test {
namespace {

TEST(Seal, GivesBackWhatWasSealed) {
  for (const std::string content : {"", "a", "with\na line"}) {
    EXPECT_EQ(Unsealed(Sealed(content)), content);
  }
}

TEST(Seal, IsBrokenByAnyChangedBitAndAnyCut) {
  const std::string sealed = Sealed("content");
  for (size_t i = 0; i < sealed.size(); ++i) {
    EXPECT_FALSE(Unsealed(sealed.substr(0, i)).has_value()) << i;
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = sealed;
      changed[i] ^= 1 << bit;
      EXPECT_FALSE(Unsealed(changed).has_value()) << i << " " << bit;
    }
  }
}

}  // namespace
}  // namespace requant::seal_test
