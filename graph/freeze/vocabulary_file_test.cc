#include "graph/freeze/vocabulary_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/files/file.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant::vocabulary_file_test {
namespace {

using tensorflow::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;

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
  EXPECT_TRUE(WriteFileAtomically(path, text).ok());
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
  const auto content = ReadVocabulary(WriteLines("a\r\n\nb c\n"), WordToLine());
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_THAT(Strings(content->keys), ElementsAre("a", "", "b c"));
  EXPECT_THAT(Integers(content->values), ElementsAre(0, 1, 2));
}

TEST(ReadVocabulary, TakesColumns) {
  VocabularyFormat format = WordToLine();
  format.key_index = 1;
  format.value_index = 0;
  format.delimiter = ',';
  const auto content = ReadVocabulary(WriteLines("7,x\n-9,y"), format);
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_THAT(Strings(content->keys), ElementsAre("x", "y"));
  EXPECT_THAT(Integers(content->values), ElementsAre(7, -9));
}

TEST(ReadVocabulary, TakesOnlySoManyLinesFromAnOffset) {
  VocabularyFormat format = WordToLine();
  format.offset = 1;
  format.size = 2;
  const auto content = ReadVocabulary(WriteLines("a\nb\nc\nd\n"), format);
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_THAT(Strings(content->keys), ElementsAre("b", "c"));
  EXPECT_THAT(Integers(content->values), ElementsAre(0, 1));
}

TEST(ReadVocabulary, RefusesAFileThatIsTooShort) {
  VocabularyFormat format = WordToLine();
  format.size = 5;
  EXPECT_THAT(
      std::string(
          ReadVocabulary(WriteLines("a\nb\n"), format).status().message()),
      HasSubstr("has 2 lines, but the graph takes 5"));
}

TEST(ReadVocabulary, NamesTheLineThatDoesNotFit) {
  VocabularyFormat format = WordToLine();
  format.key_index = 0;
  format.value_index = 1;
  EXPECT_THAT(std::string(ReadVocabulary(WriteLines("a\t1\nb\tx\n"), format)
                              .status()
                              .message()),
              HasSubstr("words.txt:2: "));
}

TEST(DropRepeatedKeys, KeepsTheFirstOfEqualEntries) {
  VocabularyFormat format = WordToLine();
  format.key_index = 0;
  format.value_index = 1;
  auto content = ReadVocabulary(WriteLines("a\t1\nb\t2\na\t1\n"), format);
  ASSERT_TRUE(content.ok()) << content.status();
  ASSERT_TRUE(DropRepeatedKeys(&*content).ok());
  EXPECT_THAT(Strings(content->keys), ElementsAre("a", "b"));
  EXPECT_THAT(Integers(content->values), ElementsAre(1, 2));
}

TEST(DropRepeatedKeys, RefusesTwoValuesForOneKey) {
  auto content = ReadVocabulary(WriteLines("a\nb\na\n"), WordToLine());
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_THAT(std::string(DropRepeatedKeys(&*content).message()),
              HasSubstr("entries 1 and 3 have the same key"));
}

}  // namespace
}  // namespace requant::vocabulary_file_test
