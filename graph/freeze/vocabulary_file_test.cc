#include "graph/freeze/vocabulary_file.h"

#include "base/files/file.h"
#include "graph/testing/testing.h"

namespace requant::vocabulary_file_test {
namespace {

std::vector<std::string> Strings(const Tensor& tensor) {
  std::vector<std::string> strings;
  for (int64_t i = 0; i < tensor.NumElements(); ++i) {
    strings.emplace_back(tensor.flat<tensorflow::tstring>()(i));
  }
  return strings;
}

std::vector<int64_t> Integers(const Tensor& tensor) {
  const auto flat = tensor.flat<int64_t>();
  return {flat.data(), flat.data() + flat.size()};
}

std::string WriteLines(const std::string& text) {
  const std::string path = testing::TempDir() + "/words.txt";
  EXPECT_OK(WriteFileAtomically(path, text));
  return path;
}

VocabularyFormat WordToLine() {
  VocabularyFormat format;
  format.key_dtype = tensorflow::DT_STRING;
  format.value_dtype = tensorflow::DT_INT64;
  format.key_index = VocabularyFormat::kWholeLine;
  format.value_index = VocabularyFormat::kLineNumber;
  return format;
}

TEST(ReadVocabulary, NumbersLines) {
  ASSERT_OK_AND_ASSIGN(
      const auto content,
      ReadVocabulary(WriteLines("a\r\n\nb c\n"), WordToLine()));
  EXPECT_THAT(Strings(content.keys), ElementsAre("a", "", "b c"));
  EXPECT_THAT(Integers(content.values), ElementsAre(0, 1, 2));
}

TEST(ReadVocabulary, TakesColumns) {
  VocabularyFormat format = WordToLine();
  format.key_index = 1;
  format.value_index = 0;
  format.delimiter = ',';
  ASSERT_OK_AND_ASSIGN(const auto content,
                       ReadVocabulary(WriteLines("7,x\n-9,y"), format));
  EXPECT_THAT(Strings(content.keys), ElementsAre("x", "y"));
  EXPECT_THAT(Integers(content.values), ElementsAre(7, -9));
}

TEST(ReadVocabulary, TakesOnlySoManyLinesFromAnOffset) {
  VocabularyFormat format = WordToLine();
  format.offset = 1;
  format.size = 2;
  ASSERT_OK_AND_ASSIGN(const auto content,
                       ReadVocabulary(WriteLines("a\nb\nc\nd\n"), format));
  EXPECT_THAT(Strings(content.keys), ElementsAre("b", "c"));
  EXPECT_THAT(Integers(content.values), ElementsAre(0, 1));
}

TEST(ReadVocabulary, RefusesAFileThatIsTooShort) {
  VocabularyFormat format = WordToLine();
  format.size = 5;
  EXPECT_THAT(ReadVocabulary(WriteLines("a\nb\n"), format),
              FailsWith(HasSubstr("has 2 lines, but the graph takes 5")));
}

TEST(ReadVocabulary, NamesTheLineThatDoesNotFit) {
  VocabularyFormat format = WordToLine();
  format.key_index = 0;
  format.value_index = 1;
  EXPECT_THAT(ReadVocabulary(WriteLines("a\t1\nb\tx\n"), format),
              FailsWith(HasSubstr("words.txt:2: ")));
}

TEST(DropRepeatedKeys, KeepsTheFirstOfEqualEntries) {
  VocabularyFormat format = WordToLine();
  format.key_index = 0;
  format.value_index = 1;
  ASSERT_OK_AND_ASSIGN(
      auto content, ReadVocabulary(WriteLines("a\t1\nb\t2\na\t1\n"), format));
  ASSERT_OK(DropRepeatedKeys(&content));
  EXPECT_THAT(Strings(content.keys), ElementsAre("a", "b"));
  EXPECT_THAT(Integers(content.values), ElementsAre(1, 2));
}

TEST(DropRepeatedKeys, RefusesTwoValuesForOneKey) {
  ASSERT_OK_AND_ASSIGN(auto content,
                       ReadVocabulary(WriteLines("a\nb\na\n"), WordToLine()));
  EXPECT_THAT(std::string(DropRepeatedKeys(&content).message()),
              HasSubstr("entries 1 and 3 have the same key"));
}

}  // namespace
}  // namespace requant::vocabulary_file_test
