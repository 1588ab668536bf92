// Damaged graphs: whatever the bytes say, the verifier returns.

#include <cstdint>
#include <iterator>
#include <map>
#include <random>

#include "base/testing/fuzz_rounds.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "graph/testing/testing.h"
#include "graph/testing/verify_test_graphs.h"
#include "graph/verify/verify.h"

namespace requant::verify_fuzz_test {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kByteRounds = 300;
constexpr int kFieldRounds = 600;

class GraphFuzz : public testing::TestWithParam<NamedGraph> {
 protected:
  // A number below `bound`.
  size_t Below(size_t bound) { return random_() % bound; }

  void Verify(const GraphDef& graph) {
    ASSERT_OK_AND_ASSIGN(auto problems, VerifyGraph(graph));
    for (const GraphProblem& problem : problems) {
      ASSERT_FALSE(problem.message.empty());
    }
  }

  int64_t OddNumber() {
    static constexpr int64_t kNumbers[] = {-1,        0,
                                           1,         2,
                                           3,         7,
                                           -2,        INT32_MAX,
                                           INT32_MIN, INT64_MAX,
                                           INT64_MIN, 4711,
                                           1 << 20,   int64_t{1} << 40};
    return kNumbers[Below(std::size(kNumbers))];
  }

  std::string OddString(const GraphDef& graph) {
    const auto& node = graph.node(Below(graph.node_size()));
    switch (Below(6)) {
      case 0:
        return node.name();
      case 1:
        return absl::StrCat(node.name(), ":", OddNumber());
      case 2:
        return absl::StrCat("^", node.name());
      case 3:
        return node.op();
      case 4:
        return "";
      default:
        return "\xff:x";
    }
  }

  // Changes one value, or drops or repeats one element, somewhere in `message`.
  void Mutate(const GraphDef& graph, Message* message) {
    const Reflection* reflection = message->GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection->ListFields(*message, &fields);
    if (fields.empty()) return;
    const FieldDescriptor* field = fields[Below(fields.size())];
    if (field->is_repeated()) {
      MutateRepeated(graph, field, message);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (Below(20) == 0) {
        reflection->ClearField(message, field);
      } else {
        Mutate(graph, reflection->MutableMessage(message, field));
      }
    } else {
      MutateScalar(graph, field, message);
    }
  }

  static std::string KeyText(const Message& entry, const FieldDescriptor* key) {
    const Reflection* reflection = entry.GetReflection();
    return key->cpp_type() == FieldDescriptor::CPPTYPE_STRING
               ? reflection->GetString(entry, key)
               : absl::StrCat(reflection->GetUInt32(entry, key));
  }

  // The place of a map's entry, whatever the order the map has today.
  int AnyEntry(const Message& message, const FieldDescriptor* map) {
    const Reflection* reflection = message.GetReflection();
    std::map<std::string, int> places;
    for (int i = 0; i < reflection->FieldSize(message, map); ++i) {
      const Message& entry = reflection->GetRepeatedMessage(message, map, i);
      const FieldDescriptor* key = entry.GetDescriptor()->map_key();
      places[KeyText(entry, key)] = i;
    }
    return std::next(places.begin(), Below(places.size()))->second;
  }

  void MutateRepeated(const GraphDef& graph, const FieldDescriptor* field,
                      Message* message) {
    const Reflection* reflection = message->GetReflection();
    const int size = reflection->FieldSize(*message, field);
    const int index = field->is_map() ? AnyEntry(*message, field) : Below(size);
    if (Below(12) == 0) {
      reflection->SwapElements(message, field, index, size - 1);
      reflection->RemoveLast(message, field);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (Below(20) == 0) {
        Message* copy = reflection->AddMessage(message, field);
        copy->CopyFrom(reflection->GetRepeatedMessage(*message, field, index));
      } else {
        Mutate(graph,
               reflection->MutableRepeatedMessage(message, field, index));
      }
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      reflection->SetRepeatedString(message, field, index, OddString(graph));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
      reflection->SetRepeatedEnumValue(message, field, index, OddNumber());
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT32) {
      reflection->SetRepeatedInt32(message, field, index, OddNumber());
    }
  }

  void MutateScalar(const GraphDef& graph, const FieldDescriptor* field,
                    Message* message) {
    const Reflection* reflection = message->GetReflection();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        reflection->SetString(message, field, OddString(graph));
        break;
      case FieldDescriptor::CPPTYPE_ENUM:
        reflection->SetEnumValue(message, field,
                                 Below(2) == 0 ? OddNumber() : Below(30));
        break;
      case FieldDescriptor::CPPTYPE_INT32:
        reflection->SetInt32(message, field, OddNumber());
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        reflection->SetInt64(message, field, OddNumber());
        break;
      default:
        reflection->ClearField(message, field);
    }
  }

  std::mt19937 random_{20240607};
};

TEST_P(GraphFuzz, DamagedBytes) {
  const std::string bytes = GraphFromText(GetParam().text).SerializeAsString();
  for (int round = 0; round < FuzzRounds(kByteRounds); ++round) {
    std::string damaged = bytes;
    for (size_t i = 0, count = 1 + Below(4); i < count; ++i) {
      damaged[Below(damaged.size())] = static_cast<char>(random_());
    }
    GraphDef graph;
    if (graph.ParsePartialFromString(damaged)) Verify(graph);
  }
}

TEST_P(GraphFuzz, DamagedFields) {
  const GraphDef original = GraphFromText(GetParam().text);
  for (int round = 0; round < FuzzRounds(kFieldRounds); ++round) {
    GraphDef graph = original;
    for (size_t i = 0, count = 1 + Below(3); i < count; ++i) {
      Mutate(original, &graph);
    }
    Verify(graph);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GraphFuzz, testing::ValuesIn(ValidGraphs()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace requant::verify_fuzz_test
