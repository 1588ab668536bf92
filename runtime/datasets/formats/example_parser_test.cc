#include "runtime/datasets/formats/example_parser.h"

#include "runtime/datasets/testing/testing.h"
#include "tensorflow/core/example/example.pb.h"

namespace requant::example_parser_test {
namespace {

using tensorflow::Tensor;

std::vector<Column> TestColumns() {
  const auto columns = ColumnsOf(SpecFromText(R"(
    input { feature: "floats" dtype: "float" shape: 3 }
    input { feature: "integers" dtype: "int64" shape: 5 }
    input { feature: "strings" dtype: "string" shape: 2 }
    input { feature: "small" dtype: "int32" default_value: "7" }
    input { feature: "text" dtype: "string" default_value: "none" })"));
  EXPECT_TRUE(columns.ok());
  return *columns;
}

// Returns an Example that mostly has what the columns require.
tensorflow::Example RandomExample(std::mt19937& random) {
  const auto often = [&] { return random() % 20 != 0; };
  tensorflow::Example example;
  auto& features = *example.mutable_features()->mutable_feature();
  if (often()) {
    for (int i = often() ? 3 : 2; i > 0; --i) {
      features["floats"].mutable_float_list()->add_value(random() * 1e-5f);
    }
  }
  if (often()) {
    for (int i = often() ? 5 : 6; i > 0; --i) {
      const int64_t value = static_cast<int64_t>(random()) << random() % 32;
      features["integers"].mutable_int64_list()->add_value(
          random() % 2 == 0 ? value : -value);
    }
  }
  if (often()) {
    for (int i = often() ? 2 : 3; i > 0; --i) {
      features["strings"].mutable_bytes_list()->add_value(
          std::string(random() % 40, 's'));
    }
  }
  if (random() % 2 == 0) {
    features["small"].mutable_int64_list()->add_value(random() % 100);
  }
  if (random() % 2 == 0) {
    features["text"].mutable_bytes_list()->add_value("t");
  }
  if (random() % 2 == 0) features["other"].mutable_float_list()->add_value(1);
  return example;
}

bool SameRow(const Tensor& a, const Tensor& b, int64_t row) {
  const Tensor row_a = a.Slice(row, row + 1), row_b = b.Slice(row, row + 1);
  if (a.dtype() != tensorflow::DT_STRING) {
    return row_a.tensor_data() == row_b.tensor_data();
  }
  for (int64_t i = 0; i < row_a.NumElements(); ++i) {
    if (row_a.unaligned_flat<tensorflow::tstring>()(i) !=
        row_b.unaligned_flat<tensorflow::tstring>()(i)) {
      return false;
    }
  }
  return true;
}

// Reads the examples in both ways and compares the results.
void ExpectAgreement(const std::vector<std::string>& examples) {
  const auto fastest = ExampleParser::Create(TestColumns());
  const auto reference =
      ExampleParser::Create(TestColumns(), ExamplePath::kReference);
  ASSERT_TRUE(fastest.ok() && reference.ok());
  const std::vector<std::string_view> views(examples.begin(), examples.end());
  std::vector<std::string> problems(views.size()), expected(views.size());
  const auto ours = fastest->Parse(views, &problems);
  const auto theirs = reference->Parse(views, &expected);
  ASSERT_TRUE(ours.ok() && theirs.ok());
  EXPECT_EQ(problems, expected);
  for (size_t row = 0; row < views.size(); ++row) {
    if (!expected[row].empty()) continue;
    for (size_t c = 0; c < theirs->size(); ++c) {
      EXPECT_TRUE(SameRow((*ours)[c], (*theirs)[c], row))
          << "column " << c << ", row " << row;
    }
  }
}

TEST(ExampleParser, AgreesWithFastParseExample) {
  std::mt19937 random(1);
  const int rounds = FuzzRounds(100);
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::string> examples;
    for (int i = 0; i < 20; ++i) {
      examples.push_back(RandomExample(random).SerializeAsString());
    }
    ExpectAgreement(examples);
  }
}

TEST(ExampleParser, AgreesWithFastParseExampleOnBrokenMessages) {
  std::mt19937 random(2);
  const int rounds = FuzzRounds(300);
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::string> examples;
    for (int i = 0; i < 10; ++i) {
      const std::string whole = RandomExample(random).SerializeAsString();
      examples.push_back(
          whole.empty() ? whole : MutatedText(whole, {"\x80", "\n"}, &random));
    }
    ExpectAgreement(examples);
  }
}

TEST(ExampleParser, LooksAtNoExampleWithAProblem) {
  const auto parser = ExampleParser::Create(TestColumns());
  ASSERT_TRUE(parser.ok());
  std::vector<std::string> problems = {"known"};
  const std::vector<std::string_view> examples = {""};
  ASSERT_TRUE(parser->Parse(examples, &problems).ok());
  EXPECT_EQ(problems[0], "known");
}

// Only this test and the benchmark notice if what writers produce is left to
// FastParseExample.
TEST(ExampleScanner, TakesTheCommonForm) {
  const std::vector<Column> columns = *ColumnsOf(SpecFromText(R"(
    input { feature: "floats" dtype: "float" shape: 2 }
    input { feature: "integers" dtype: "int64" shape: 3 }
    input { feature: "text" dtype: "string" default_value: "none" })"));
  std::vector<Tensor> rows;
  for (const Column& column : columns) {
    rows.push_back(*AllocateRows(column, 1));
  }
  ExampleScanner scanner(columns, absl::MakeSpan(rows));
  const std::string example = ExampleBytes(R"(features {
      feature { key: "other" value { int64_list { value: 1 } } }
      feature { key: "floats" value { float_list { value: [0.5, -2] } } }
      feature { key: "integers" value { int64_list {
          value: [1, -1, 1000000] } } } })");
  ASSERT_TRUE(scanner.Scan(example, 0));
  EXPECT_EQ(rows[0].flat<float>()(1), -2);
  EXPECT_EQ(rows[1].flat<int64_t>()(1), -1);
  EXPECT_EQ(rows[1].flat<int64_t>()(2), 1000000);
  EXPECT_EQ(rows[2].flat<tensorflow::tstring>()(0), "none");
}

}  // namespace
}  // namespace requant::example_parser_test
