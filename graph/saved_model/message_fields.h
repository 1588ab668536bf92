#ifndef REQUANT_GRAPH_SAVED_MODEL_MESSAGE_FIELDS_H_
#define REQUANT_GRAPH_SAVED_MODEL_MESSAGE_FIELDS_H_

// A serialized protocol buffer taken apart and put together again without being
// parsed, so that what is not touched keeps its bytes.

#include <string>
#include <string_view>
#include <vector>

namespace requant {

struct MessageField {
  int number = 0;
  // The field with its tag.
  std::string_view bytes;
  // What a field of type message, string or bytes holds; "" for others.
  std::string_view payload;
};

// The fields of a serialized message in their order, as parts of `message`.
// False when it is none.
bool SplitFields(std::string_view message, std::vector<MessageField>* fields);

// The payloads of all fields of that number behind one another: the serialized
// submessage, of which a serializer may write parts.
std::string JoinedPayload(const std::vector<MessageField>& fields, int number);

// Appends a field of type message, string or bytes.
void AppendField(int number, std::string_view payload, std::string* message);

}  // namespace requant

#endif  // REQUANT_GRAPH_SAVED_MODEL_MESSAGE_FIELDS_H_
