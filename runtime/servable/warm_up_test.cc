#include "runtime/servable/warm_up.h"

#include <random>

#include "base/testing/testing.h"

namespace requant::warm_up_test {
namespace {

using tensorflow::Tensor;

constexpr char kFile[] = "assets.extra/tf_serving_warmup_requests";

Tensor Words(const std::vector<std::string>& words) {
  Tensor tensor(tensorflow::DT_STRING, {static_cast<int64_t>(words.size())});
  std::copy(words.begin(), words.end(),
            tensor.flat<tensorflow::tstring>().data());
  return tensor;
}

std::vector<WarmUpRequest> Requests() {
  Tensor scores(tensorflow::DT_FLOAT, {2, 3});
  for (int i = 0; i < 6; ++i) scores.flat<float>()(i) = 0.5f * i;
  WarmUpRequest request;
  request.model = "colors";
  request.signature = "classify";
  request.inputs = {{"word", Words({"red", ""})}};
  request.outputs = {{"best", Words({"a", "b"})}, {"scores", scores}};
  return {request, request};
}

TEST(WarmUp, ComesBackAsItWasWritten) {
  const ScratchFolder folder;
  ASSERT_OK(WriteWarmUp(folder.path(), Requests()));
  ASSERT_OK_AND_ASSIGN(const auto read, ReadWarmUp(folder.path()));
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[1].model, "colors");
  EXPECT_EQ(read[1].signature, "classify");
  EXPECT_EQ(read[1].inputs.at("word").SummarizeValue(2),
            Words({"red", ""}).SummarizeValue(2));
  EXPECT_EQ(read[1].outputs.at("scores").SummarizeValue(6),
            Requests()[1].outputs.at("scores").SummarizeValue(6));
  // Written again, the file is the same.
  const std::string first = folder.Read(kFile);
  ASSERT_OK(WriteWarmUp(folder.path(), Requests()));
  EXPECT_TRUE(folder.Read(kFile) == first);
}

TEST(WarmUp, IsNotThereInAModelOfOthers) {
  const ScratchFolder folder;
  ASSERT_OK_AND_ASSIGN(const auto read, ReadWarmUp(folder.path()));
  EXPECT_TRUE(read.empty());
}

// Every byte of the file changed, and every beginning of it.
TEST(WarmUp, SaysThatAFileIsDamaged) {
  const ScratchFolder folder;
  ASSERT_OK(WriteWarmUp(folder.path(), Requests()));
  const std::string content = folder.Read(kFile);
  std::mt19937 random(1);
  for (size_t i = 0; i < content.size(); ++i) {
    std::string changed = content;
    changed[i] ^= 1 + random() % 255;
    folder.Write(kFile, changed);
    EXPECT_THAT(ReadWarmUp(folder.path()).status().message(),
                testing::HasSubstr("is damaged"))
        << i;
    folder.Write(kFile, content.substr(0, i));
    const auto cut = ReadWarmUp(folder.path());
    if (cut.ok()) {
      EXPECT_LT(cut->size(), 2u) << i;
    }
  }
}

}  // namespace
}  // namespace requant::warm_up_test
