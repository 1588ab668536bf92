#include "graph/saved_model/message_fields.h"

#include "graph/testing/testing.h"

namespace requant::message_fields_test {
namespace {

std::string SomeGraph() {
  GraphDef graph;
  graph.add_node()->set_name("a");
  graph.add_node()->set_name("b");
  graph.mutable_versions()->set_producer(27);
  return graph.SerializeAsString();
}

TEST(MessageFields, TogetherAreTheMessage) {
  const std::string message = SomeGraph();
  std::vector<MessageField> fields;
  ASSERT_TRUE(SplitFields(message, &fields));
  std::string joined;
  for (const MessageField& field : fields) joined.append(field.bytes);
  EXPECT_EQ(joined, message);
  EXPECT_EQ(fields.size(), 3);
}

TEST(MessageFields, HaveThePayloadOfSubmessages) {
  const std::string message = SomeGraph();
  std::vector<MessageField> fields;
  ASSERT_TRUE(SplitFields(message, &fields));
  NodeDef node;
  ASSERT_TRUE(node.ParseFromString(std::string(fields[0].payload)));
  EXPECT_EQ(fields[0].number, GraphDef::kNodeFieldNumber);
  EXPECT_EQ(node.name(), "a");
}

TEST(MessageFields, OfOneSubmessageInPartsAreJoined) {
  std::string message;
  tensorflow::VersionDef part;
  part.set_producer(5);
  AppendField(GraphDef::kVersionsFieldNumber, part.SerializeAsString(),
              &message);
  part.Clear();
  part.set_min_consumer(2);
  AppendField(GraphDef::kVersionsFieldNumber, part.SerializeAsString(),
              &message);
  std::vector<MessageField> fields;
  ASSERT_TRUE(SplitFields(message, &fields));
  tensorflow::VersionDef versions;
  ASSERT_TRUE(versions.ParseFromString(
      JoinedPayload(fields, GraphDef::kVersionsFieldNumber)));
  EXPECT_EQ(versions.producer(), 5);
  EXPECT_EQ(versions.min_consumer(), 2);
}

TEST(MessageFields, AppendedAreReadBackAtAnySize) {
  for (const size_t size : {0, 1, 127, 128, 20000, 3000000}) {
    std::string message;
    AppendField(2000, std::string(size, 'x'), &message);
    std::vector<MessageField> fields;
    ASSERT_TRUE(SplitFields(message, &fields));
    ASSERT_EQ(fields.size(), 1);
    EXPECT_EQ(fields[0].number, 2000);
    EXPECT_EQ(fields[0].payload.size(), size);
  }
}

// Whatever is cut off or changed, nothing outside of the message is read, and
// what is split fits together again.
TEST(MessageFields, OfDamagedMessagesAreRefusedOrWhole) {
  const std::string message = SomeGraph();
  for (size_t at = 0; at < message.size(); ++at) {
    for (const char byte : {'\x00', '\x07', '\x7f', '\xff'}) {
      std::string damaged = message;
      damaged[at] = byte;
      std::vector<MessageField> fields;
      if (!SplitFields(damaged, &fields)) continue;
      std::string joined;
      for (const MessageField& field : fields) joined.append(field.bytes);
      EXPECT_EQ(joined, damaged);
    }
  }
  std::vector<MessageField> fields;
  EXPECT_FALSE(SplitFields(message.substr(0, message.size() - 1), &fields));
  EXPECT_FALSE(SplitFields(std::string("\x0a\xff\xff\xff\x7f", 5), &fields));
}

}  // namespace
}  // namespace requant::message_fields_test
