#include "runtime/datasets/formats/record_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/datasets/testing/testing.h"

namespace requant::record_reader_test {
namespace {

using testing::HasSubstr;
using testing::Not;

// What is said of a file with this content.
std::string Problem(const std::string& content) {
  const auto reader = RecordReader::Open(WriteTestFile("records", content));
  if (!reader.ok()) return std::string(reader.status().message());
  std::string bytes;
  return std::string((*reader)->Read(&bytes).status().message());
}

TEST(RecordReader, TellsTextFromBinaryFiles) {
  EXPECT_THAT(Problem("name,text\n1,gr\u00fc\u00df\u20ac\n"),
              HasSubstr("looks like text"));
  // Graphs, which start with a line break and printable lengths.
  EXPECT_THAT(Problem("\n0\n)" + std::string(41, 'x') + "\x12\x03op"),
              Not(HasSubstr("looks like text")));
  EXPECT_THAT(Problem("\n\xb3\x82\x0c\n\x0bsome_weights"),
              Not(HasSubstr("looks like text")));
  EXPECT_THAT(Problem("\n\xb3\xb3 0123456789"),
              Not(HasSubstr("looks like text")));
}

}  // namespace
}  // namespace requant::record_reader_test
