#include "graph/freeze/checkpoint.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "graph/testing/testing.h"
#include "tensorflow/core/framework/tensor_slice.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/util/tensor_bundle/tensor_bundle.h"
#include "tensorflow/core/util/tensor_slice_writer.h"

namespace requant::checkpoint_test {
namespace {

using tensorflow::TensorShape;
using tensorflow::TensorSlice;

// The checkpoints contain the vector "v" = [0, 1, 2, 3] and the second half of
// the partitioned "p" with the same values.
Tensor Values() { return TensorOf<int32_t>({4}, {0, 1, 2, 3}); }

TensorSlice Half() { return TensorSlice::ParseOrDie("4,4"); }

std::string WriteCheckpoint(const std::string& name) {
  const std::string prefix = testing::TempDir() + "/" + name;
  tensorflow::BundleWriter writer(tensorflow::Env::Default(), prefix);
  EXPECT_OK(writer.Add("v", Values()));
  EXPECT_OK(writer.AddSlice("p", TensorShape({8}), Half(), Values()));
  EXPECT_OK(writer.Finish());
  return prefix;
}

std::string WriteFirstFormat(const std::string& name) {
  const std::string path = testing::TempDir() + "/first_" + name;
  tensorflow::checkpoint::TensorSliceWriter writer(
      path, tensorflow::checkpoint::CreateTableTensorSliceBuilder);
  const Tensor values = Values();
  const int32_t* data = values.flat<int32_t>().data();
  EXPECT_OK(writer.Add("v", TensorShape({4}), TensorSlice(1), data));
  EXPECT_OK(writer.Add("p", TensorShape({8}), Half(), data));
  EXPECT_OK(writer.Finish());
  return path;
}

// Tests rules that hold for both formats.
class EitherFormat
    : public testing::TestWithParam<std::string (*)(const std::string&)> {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(auto opened, Checkpoint::Open(GetParam()("either")));
    checkpoint_ = std::move(opened);
  }

  std::unique_ptr<Checkpoint> checkpoint_;
};

TEST_P(EitherFormat, TellsWhatATensorIs) {
  ASSERT_OK_AND_ASSIGN(const auto entry, checkpoint_->Find({"v", ""}));
  EXPECT_EQ(entry.dtype, tensorflow::DT_INT32);
  EXPECT_EQ(entry.shape.DebugString(), "[4]");
  EXPECT_EQ(entry.bytes, 16);
}

TEST_P(EitherFormat, ReadsAWholeTensor) {
  ASSERT_OK_AND_ASSIGN(const auto value, checkpoint_->Read({"v", ""}));
  EXPECT_EQ(value.DebugString(), Values().DebugString());
}

TEST_P(EitherFormat, ReadsAPartOfAPart) {
  ASSERT_OK_AND_ASSIGN(const auto value, checkpoint_->Read({"p", "8 5,2"}));
  EXPECT_THAT(ValuesOf<int32_t>(value), ElementsAre(1, 2));
}

TEST_P(EitherFormat, RefusesASliceOfAnotherTensor) {
  EXPECT_THAT(checkpoint_->Find({"p", "9 5,2"}),
              FailsWith(HasSubstr("its shape is [8]")));
  EXPECT_THAT(checkpoint_->Find({"p", "8 x"}),
              FailsWith(HasSubstr("no slice of a tensor")));
}

TEST_P(EitherFormat, RefusesTheMissingHalfOfAPartitionedTensor) {
  EXPECT_THAT(checkpoint_->Read({"p", "8 0,2"}),
              FailsWith(HasSubstr("cannot read \"p\"")));
}

TEST_P(EitherFormat, SuggestsATensorThatIsSpelledAlike) {
  EXPECT_THAT(
      checkpoint_->Find({"vv", ""}),
      FailsWith(HasSubstr("has no tensor \"vv\" (did you mean \"v\"?)")));
}

INSTANTIATE_TEST_SUITE_P(Formats, EitherFormat,
                         testing::Values(WriteCheckpoint, WriteFirstFormat),
                         [](const auto& format) {
                           return format.index == 0 ? "Bundle" : "OneFile";
                         });

TEST(FirstFormat, IsReadFromTheFilesOfAPattern) {
  const std::string path = WriteFirstFormat("shard-00000-of-00001");
  const std::string pattern = testing::TempDir() + "first_shard-*-of-00001";
  ASSERT_OK_AND_ASSIGN(const auto checkpoint, Checkpoint::Open(pattern));
  EXPECT_TRUE(checkpoint->Contains("v"));
  // The file must be known, so that no output overwrites it.
  EXPECT_EQ(CheckpointFiles(pattern).size(), 1);
}

TEST(FirstFormat, NoticesADamagedByteAndACutFile) {
  const std::string path = WriteFirstFormat("damaged");
  const std::string whole = *ReadFile(path, 1 << 20);
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const bool cut : {false, true}) {
      std::string damaged = whole.substr(0, cut ? i : whole.size());
      if (!cut) damaged[i] ^= 0x10;
      ASSERT_OK(WriteFileAtomically(path, damaged));
      const auto checkpoint = Checkpoint::Open(path);
      if (!checkpoint.ok()) {
        EXPECT_THAT(checkpoint,
                    FailsWith(path + " is damaged or not a checkpoint"));
        continue;
      }
      const auto value = (*checkpoint)->Read({"v", ""});
      if (value.ok()) {
        EXPECT_EQ(value->DebugString(), Values().DebugString()) << i;
      } else {
        EXPECT_THAT(value, FailsWith(HasSubstr("\"v\""))) << i;
      }
    }
  }
}

TEST(Checkpoint, SuggestsTheNameThatWasMeant) {
  const std::string prefix = WriteCheckpoint("named");
  for (const char* ending : {".index", ".data-00000-of-00001"}) {
    EXPECT_THAT(Checkpoint::Open(prefix + ending),
                FailsWith(HasSubstr("name it " + prefix)));
  }
}

TEST(Checkpoint, RefusesAnIndexThatIsNone) {
  const std::string prefix = testing::TempDir() + "/text";
  ASSERT_OK(WriteFileAtomically(prefix + ".index", "not a table"));
  EXPECT_THAT(Checkpoint::Open(prefix),
              FailsWith(HasSubstr("is damaged or not a checkpoint's index")));
}

TEST(Checkpoint, DoesNotWaitForAPipe) {
  const std::string prefix = WriteCheckpoint("pipe");
  const std::string data = prefix + ".data-00000-of-00001";
  ASSERT_EQ(unlink(data.c_str()), 0);
  ASSERT_EQ(mkfifo(data.c_str(), 0666), 0);
  EXPECT_THAT(Checkpoint::Open(prefix),
              FailsWith(HasSubstr(data + ": it is no regular file")));
  unlink(data.c_str());
}

}  // namespace
}  // namespace requant::checkpoint_test
