#include "base/records/input_file.h"

#include "base/testing/gzip.h"
#include "base/testing/testing.h"

namespace requant::input_file_test {
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
  EXPECT_THAT(Gunzip(packed, "a.gz", 1000),
              FailsWith(HasSubstr("a.gz is a damaged or truncated gzip file")));
}

TEST(Gunzip, StopsAtTheLimit) {
  EXPECT_THAT(Gunzip(Gzip(std::string(1 << 24, '0')), "bomb.gz", 1 << 20),
              FailsWith(HasSubstr("bomb.gz holds more than 1048576 bytes")));
}

// Returns the lines of a file with this content, or "too long" for long ones.
std::vector<std::string> Lines(const std::string& content, size_t most) {
  const ScratchFolder folder;
  LineReader reader(*InputFile::Open(folder.Write("lines", content)), most);
  std::vector<std::string> lines;
  std::string_view line;
  while (*reader.Next(&line)) {
    lines.emplace_back(reader.too_long() ? "too long" : line);
    EXPECT_EQ(reader.number(), lines.size());
  }
  EXPECT_EQ(reader.position(), content.size());
  return lines;
}

TEST(LineReader, TakesEveryLineEnd) {
  EXPECT_THAT(Lines("a\n\r\nb\rc\r\nd", 9), ElementsAre("a", "", "b\rc", "d"));
  EXPECT_THAT(Lines("", 9), ElementsAre());
  EXPECT_THAT(Lines(Gzip("a\nb\n"), 9), ElementsAre("a", "b"));
}

TEST(LineReader, PassesOverLinesThatAreTooLong) {
  EXPECT_THAT(Lines("123\n1234\n\n12345", 3),
              ElementsAre("123", "too long", "", "too long"));
  const std::string large(3 << 20, 'x');
  EXPECT_THAT(Lines(large + "\n" + large + "y\nz", large.size()),
              ElementsAre(large, "too long", "z"));
}

TEST(LineReader, GivesUpOnALineWithoutAnEnd) {
  LineReader reader(*InputFile::Open("/dev/zero"), 100);
  std::string_view line;
  EXPECT_THAT(reader.Next(&line),
              FailsWith(HasSubstr("a line of more than 1 GB")));
}

}  // namespace
}  // namespace requant::input_file_test
