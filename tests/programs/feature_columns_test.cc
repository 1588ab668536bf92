// Tests that fuse_feature_columns, on a genuine estimator graph, gives
// simplified and fused graphs with the original's results. For the Wide & Deep
// model, the gates of its workflow check this.

#include <cmath>
#include <cstdint>
#include <map>

#include "graph/graph_io.h"
#include "runtime/datasets/criteo/criteo_format.h"
#include "tests/support/program_runs.h"
#include "transforms/testing/testing.h"

namespace requant::feature_columns_test {
namespace {

using tensorflow::TensorShape;

using Feeds = std::vector<std::pair<std::string, Tensor>>;

constexpr char kOutput[] = "head/predictions/probabilities";
constexpr int kRecords = 300;

Tensor Strings(const std::vector<std::string>& values) {
  return TensorOf<tensorflow::tstring>(
      TensorShape({static_cast<int64_t>(values.size())}),
      {values.begin(), values.end()});
}

std::vector<float> Probabilities(const GraphDef& graph, const Feeds& feeds) {
  return ValuesOf(MustRunGraph(graph, feeds, {kOutput})[0]);
}

// Returns the greatest difference; infinite if they are not comparable.
double Difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size() || a.empty()) return INFINITY;
  double greatest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    greatest = std::max<double>(greatest, std::abs(a[i] - b[i]));
  }
  return greatest;
}

// A small estimator with columns of many kinds.
class ManyColumns : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(auto graph,
                         ReadGraph("transforms/testdata/columns.pb.gz"));
    raw_ = std::move(graph);
  }

  static Feeds RawFeeds(bool with_missing) {
    const auto pick = [&](Words words, int step) {
      if (with_missing) words.push_back("");
      std::vector<std::string> picked;
      for (int i = 0; i < kRecords; ++i) {
        picked.push_back(words[i * step % words.size()]);
      }
      return Strings(picked);
    };
    std::vector<int64_t> identity, with_default;
    std::vector<float> age, income;
    for (int i = 0; i < kRecords; ++i) {
      identity.push_back(with_missing && i % 5 == 0 ? -1 : i % 6);
      with_default.push_back(with_missing ? i % 12 - 3 : i % 6);
      age.push_back(i % 11 * 0.5f);
      income.push_back(i % 7);
    }
    return {
        {"in_hashed", pick({"a", "b", "c", "d"}, 1)},
        {"in_hashed_too", pick({"e", "f", "g"}, 5)},
        {"in_home", pick({"h", "i", "j", "k"}, 3)},
        {"in_work", pick({"l", "m", "h"}, 7)},
        {"in_words", with_missing ? pick({"red", "green", "blue", "mauve"}, 1)
                                  : pick({"red", "green", "blue"}, 1)},
        {"in_words_oov", pick({"cat", "dog", "cow", "pig", "ant"}, 1)},
        {"in_identity", TensorOf<int64_t>({kRecords}, identity)},
        {"in_identity_default", TensorOf<int64_t>({kRecords}, with_default)},
        {"in_age", TensorOf<float>({kRecords}, age)},
        {"in_income", TensorOf<float>({kRecords}, income)}};
  }

  // Returns what the graph itself computes from the crossed features.
  std::vector<int64_t> Crossed(const Feeds& feeds) const {
    const auto result = RunGraph(raw_, feeds,
                                 {"linear/linear_model/linear_model/"
                                  "linear_model/hashed_X_hashed_too/"
                                  "SparseCross:1"});
    if (!result.ok()) return {};
    const auto flat = (*result)[0].flat<int64_t>();
    return {flat.data(), flat.data() + flat.size()};
  }

  GraphDef raw_;
};

TEST_F(ManyColumns, AreSimplifiedExactly) {
  const GraphDef simple =
      MustTransform("fuse_feature_columns(fuse=false)", raw_, {}, {kOutput})
          .graph;
  for (bool with_missing : {false, true}) {
    const Feeds feeds = RawFeeds(with_missing);
    EXPECT_LE(
        Difference(Probabilities(simple, feeds), Probabilities(raw_, feeds)),
        1e-6)
        << with_missing;
  }
}

TEST_F(ManyColumns, AreFoundByWhatTheyCompute) {
  const TransformRun run =
      RunTransform("fuse_feature_columns", raw_, {}, {kOutput});
  for (const char* text :
       {"\"in_hashed\", StringToHashBucketFast into 10 buckets",
        "\"in_words\", position in a vocabulary, ",
        "\"in_words_oov\", position in a vocabulary or StringToHashBucketFast "
        "into 3 buckets",
        "\"in_identity\", the number itself, ",
        "\"in_identity_default\", the number itself or a default",
        "\"in_home\", StringToHashBucketFast into 9 buckets",
        "\"in_work\", StringToHashBucketFast into 9 buckets",
        "\"in_age\", cut into 4 buckets",
        "\"in_hashed\" and \"in_hashed_too\", SparseCross into 12 buckets",
        "\"in_income\", (x - 3) / 7", "\"in_age\", x"}) {
    EXPECT_THAT(run.notes, Contains(HasSubstr(text)));
  }
}

// The pairs are in the order in which the fused graph reports its columns.
TEST_F(ManyColumns, GiveTheSameFused) {
  const Feeds raw_feeds = RawFeeds(/*with_missing=*/false);
  const auto values =
      [by_name =
           std::map<std::string, Tensor>(raw_feeds.begin(), raw_feeds.end())](
          const std::string& name) { return by_name.at("in_" + name); };
  const auto text = [&](const std::string& name, int i) {
    return std::string(values(name).flat<tensorflow::tstring>()(i));
  };
  const auto position = [&](const Words& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) - words.begin();
  };
  const std::vector<int64_t> crossed = Crossed(raw_feeds);
  ASSERT_EQ(crossed.size(), kRecords);
  std::vector<int64_t> pairs;
  std::vector<float> numbers;
  for (int i = 0; i < kRecords; ++i) {
    const std::string pet = text("words_oov", i);
    const int64_t known = position({"cat", "dog"}, pet);
    const float age = values("age").flat<float>()(i);
    const std::vector<int64_t> ids = {
        (age >= 1) + (age >= 2.5) + (age >= 4),
        crossed[i],
        HashBucket(text("hashed", i), 10),
        HashBucket(text("hashed_too", i), 7),
        HashBucket(text("home", i), 9),
        values("identity").flat<int64_t>()(i),
        position({"red", "green", "blue"}, text("words", i)),
        known < 2 ? known : 2 + HashBucket(pet, 3),
        HashBucket(text("work", i), 9),
        values("identity_default").flat<int64_t>()(i)};
    for (size_t column = 0; column < ids.size(); ++column) {
      pairs.push_back(column);
      pairs.push_back(ids[column]);
    }
    numbers.push_back(values("age").flat<float>()(i));
    numbers.push_back((values("income").flat<float>()(i) - 3) / 7);
  }
  const TransformRun run =
      MustTransform("fuse_feature_columns", raw_, {}, {kOutput});
  // Columns of other kinds still read the raw placeholders.
  Feeds feeds;
  for (const auto& feed : raw_feeds) {
    if (HasNode(run.graph, feed.first)) feeds.push_back(feed);
  }
  feeds.emplace_back("new_categorical_placeholder",
                     TensorOf<int64_t>({kRecords * 10, 2}, pairs));
  feeds.emplace_back("new_numeric_placeholder",
                     TensorOf<float>({kRecords, 2}, numbers));
  EXPECT_LE(Difference(Probabilities(run.graph, feeds),
                       Probabilities(raw_, raw_feeds)),
            1e-6);
}

}  // namespace
}  // namespace requant::feature_columns_test
