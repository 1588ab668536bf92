#include "graph/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "base/file.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_slice.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/util/tensor_bundle/tensor_bundle.h"

namespace requant {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorShape;
using testing::HasSubstr;

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

// A checkpoint with the vector "v" = [0, 1, 2, 3] and the partitioned "p".
std::string WriteCheckpoint(const std::string& name) {
  const std::string prefix = testing::TempDir() + "/" + name;
  tensorflow::BundleWriter writer(tensorflow::Env::Default(), prefix);
  Tensor value(tensorflow::DT_INT32, TensorShape({4}));
  for (int i = 0; i < 4; ++i) value.flat<int32_t>()(i) = i;
  EXPECT_TRUE(writer.Add("v", value).ok());
  EXPECT_TRUE(writer
                  .AddSlice("p", TensorShape({8}),
                            tensorflow::TensorSlice::ParseOrDie("4,4"), value)
                  .ok());
  EXPECT_TRUE(writer.Finish().ok());
  return prefix;
}

TEST(Checkpoint, TellsWhatATensorIs) {
  const auto checkpoint = Checkpoint::Open(WriteCheckpoint("tells"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const auto entry = (*checkpoint)->Find({"v", ""});
  ASSERT_TRUE(entry.ok()) << entry.status();
  EXPECT_EQ(entry->dtype, tensorflow::DT_INT32);
  EXPECT_EQ(entry->shape.DebugString(), "[4]");
  EXPECT_EQ(entry->bytes, 16);
}

TEST(Checkpoint, ReadsAPartOfAPart) {
  const auto checkpoint = Checkpoint::Open(WriteCheckpoint("part"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const auto value = (*checkpoint)->Read({"p", "8 5,2"});
  ASSERT_TRUE(value.ok()) << value.status();
  ASSERT_EQ(value->NumElements(), 2);
  EXPECT_EQ(value->flat<int32_t>()(0), 1);
  EXPECT_EQ(value->flat<int32_t>()(1), 2);
}

TEST(Checkpoint, RefusesASliceOfAnotherTensor) {
  const auto checkpoint = Checkpoint::Open(WriteCheckpoint("slice"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_THAT(Message((*checkpoint)->Find({"p", "9 5,2"}).status()),
              HasSubstr("its shape is [8]"));
  EXPECT_THAT(Message((*checkpoint)->Find({"p", "8 x"}).status()),
              HasSubstr("no slice of a tensor"));
}

TEST(Checkpoint, RefusesTheMissingHalfOfAPartitionedTensor) {
  const auto checkpoint = Checkpoint::Open(WriteCheckpoint("half"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_THAT(Message((*checkpoint)->Read({"p", "8 0,2"}).status()),
              HasSubstr("cannot read \"p\""));
}

TEST(Checkpoint, SuggestsTheNameThatWasMeant) {
  const std::string prefix = WriteCheckpoint("named");
  EXPECT_THAT(Message(Checkpoint::Open(prefix + ".index").status()),
              HasSubstr("name it " + prefix));
}

TEST(Checkpoint, SaysThatTheOldFormatIsNotRead) {
  const std::string path = testing::TempDir() + "/old.ckpt";
  ASSERT_TRUE(WriteFileAtomically(path, "anything").ok());
  EXPECT_THAT(Message(Checkpoint::Open(path).status()),
              HasSubstr("first format"));
}

TEST(Checkpoint, RefusesAnIndexThatIsNone) {
  const std::string prefix = testing::TempDir() + "/text";
  ASSERT_TRUE(WriteFileAtomically(prefix + ".index", "not a table").ok());
  EXPECT_THAT(Message(Checkpoint::Open(prefix).status()),
              HasSubstr("is damaged or not a checkpoint's index"));
}

TEST(Checkpoint, DoesNotWaitForAPipe) {
  const std::string prefix = WriteCheckpoint("pipe");
  const std::string data = prefix + ".data-00000-of-00001";
  ASSERT_EQ(unlink(data.c_str()), 0);
  ASSERT_EQ(mkfifo(data.c_str(), 0666), 0);
  EXPECT_THAT(Message(Checkpoint::Open(prefix).status()),
              HasSubstr(data + ": it is no regular file"));
  unlink(data.c_str());
}

}  // namespace
}  // namespace requant
