#include "base/files/file.h"
#include "graph/freeze/freeze_parts.h"
#include "graph/testing/testing.h"

namespace requant::freeze_tables_test {
namespace {

constexpr int64_t kWholeLine = VocabularyFormat::kWholeLine;
constexpr int64_t kLineNumber = VocabularyFormat::kLineNumber;

// Reads a vocabulary of `lines` with text keys and integer values.
absl::StatusOr<TableContent> Read(const std::string& lines, int64_t key_index,
                                  int64_t value_index, char delimiter = '\t',
                                  int64_t size = -1, int64_t offset = 0) {
  const std::string path = testing::TempDir() + "/words.txt";
  EXPECT_OK(WriteFileAtomically(path, lines));
  return ReadVocabulary(path,
                        {tensorflow::DT_STRING, tensorflow::DT_INT64, key_index,
                         value_index, delimiter, size, offset});
}

MATCHER_P2(Holds, keys, values, "") {
  const auto strings = ValuesOf<tensorflow::tstring>(arg.keys);
  return testing::ExplainMatchResult(
             keys, std::vector<std::string>(strings.begin(), strings.end()),
             result_listener) &&
         testing::ExplainMatchResult(values, ValuesOf<int64_t>(arg.values),
                                     result_listener);
}

TEST(ReadVocabulary, NumbersLines) {
  ASSERT_OK_AND_ASSIGN(const auto content,
                       Read("a\r\n\nb c\n", kWholeLine, kLineNumber));
  EXPECT_THAT(content,
              Holds(ElementsAre("a", "", "b c"), ElementsAre(0, 1, 2)));
}

TEST(ReadVocabulary, TakesColumns) {
  ASSERT_OK_AND_ASSIGN(const auto content, Read("7,x\n-9,y", 1, 0, ','));
  EXPECT_THAT(content, Holds(ElementsAre("x", "y"), ElementsAre(7, -9)));
}

TEST(ReadVocabulary, TakesTheGivenNumberOfLinesFromAnOffset) {
  ASSERT_OK_AND_ASSIGN(const auto content, Read("a\nb\nc\nd\n", kWholeLine,
                                                kLineNumber, '\t', 2, 1));
  EXPECT_THAT(content, Holds(ElementsAre("b", "c"), ElementsAre(0, 1)));
}

TEST(ReadVocabulary, RefusesAFileThatIsTooShort) {
  EXPECT_THAT(Read("a\nb\n", kWholeLine, kLineNumber, '\t', 5),
              FailsWith(HasSubstr("has 2 lines, but the graph takes 5")));
}

TEST(ReadVocabulary, NamesTheLineThatDoesNotFit) {
  EXPECT_THAT(Read("a\t1\nb\tx\n", 0, 1),
              FailsWith(HasSubstr("words.txt:2: ")));
}

TEST(DropRepeatedKeys, KeepsTheFirstOfEqualEntries) {
  ASSERT_OK_AND_ASSIGN(auto content, Read("a\t1\nb\t2\na\t1\n", 0, 1));
  ASSERT_OK(DropRepeatedKeys(&content));
  EXPECT_THAT(content, Holds(ElementsAre("a", "b"), ElementsAre(1, 2)));
}

TEST(DropRepeatedKeys, RefusesTwoValuesForOneKey) {
  ASSERT_OK_AND_ASSIGN(auto content,
                       Read("a\nb\na\n", kWholeLine, kLineNumber));
  EXPECT_THAT(DropRepeatedKeys(&content),
              FailsWith(HasSubstr("entries 1 and 3 have the same key")));
}

}  // namespace
}  // namespace requant::freeze_tables_test
