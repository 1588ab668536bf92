#include "graph/gzip.h"

#include "graph/testing/testing.h"

namespace requant::gzip_test {
namespace {

TEST(Gunzip, GivesBackWhatWasPacked) {
  const std::string text = std::string(1 << 20, 'a') + "end";
  ASSERT_OK_AND_ASSIGN(const auto plain, Gunzip(Gzip(text), "a.gz", 1 << 21));
  EXPECT_TRUE(plain == text);
}

TEST(Gunzip, RefusesEveryTruncation) {
  const std::string packed = Gzip("some text that is long enough to be packed");
  for (size_t size = 0; size < packed.size(); ++size) {
    EXPECT_FALSE(Gunzip(packed.substr(0, size), "a.gz", 1000).ok()) << size;
  }
}

TEST(Gunzip, RefusesDamage) {
  std::string packed = Gzip("some text that is long enough to be packed");
  packed[packed.size() / 2] ^= 0x55;
  const auto plain = Gunzip(packed, "a.gz", 1000);
  EXPECT_THAT(plain,
              FailsWith(HasSubstr("a.gz is a damaged or truncated gzip file")));
}

TEST(Gunzip, StopsAtTheLimit) {
  const auto plain =
      Gunzip(Gzip(std::string(1 << 24, '0')), "bomb.gz", 1 << 20);
  EXPECT_THAT(plain,
              FailsWith(HasSubstr("bomb.gz holds more than 1048576 bytes")));
}

}  // namespace
}  // namespace requant::gzip_test
