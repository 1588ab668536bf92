#include "graph/saved_model/message_fields.h"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"

namespace requant {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

// Reads what is behind `tag`.
bool SkipField(std::string_view message, uint32_t tag, CodedInputStream* input,
               MessageField* field) {
  if (WireFormatLite::GetTagWireType(tag) !=
      WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
    return WireFormatLite::SkipField(input, tag);
  }
  uint32_t size;
  if (!input->ReadVarint32(&size)) return false;
  const size_t begin = input->CurrentPosition();
  if (size > message.size() - begin) return false;
  field->payload = message.substr(begin, size);
  return input->Skip(static_cast<int>(size));
}

uint32_t TagOf(int number) {
  return WireFormatLite::MakeTag(number,
                                 WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
}

}  // namespace

bool SplitFields(std::string_view message, std::vector<MessageField>* fields) {
  fields->clear();
  if (message.size() > std::numeric_limits<int>::max()) return false;
  CodedInputStream input(reinterpret_cast<const uint8_t*>(message.data()),
                         static_cast<int>(message.size()));
  input.SetTotalBytesLimit(std::numeric_limits<int>::max());
  while (true) {
    const size_t begin = input.CurrentPosition();
    const uint32_t tag = input.ReadTag();
    if (tag == 0) return begin == message.size();
    MessageField field;
    field.number = WireFormatLite::GetTagFieldNumber(tag);
    if (field.number == 0 || !SkipField(message, tag, &input, &field)) {
      return false;
    }
    field.bytes = message.substr(begin, input.CurrentPosition() - begin);
    fields->push_back(field);
  }
}

std::string JoinedPayload(const std::vector<MessageField>& fields, int number) {
  std::string joined;
  for (const MessageField& field : fields) {
    if (field.number == number) joined.append(field.payload);
  }
  return joined;
}

void AppendField(int number, std::string_view payload, std::string* message) {
  constexpr int kMostHeaderBytes = 10;
  uint8_t header[kMostHeaderBytes];
  uint8_t* end = CodedOutputStream::WriteVarint32ToArray(TagOf(number), header);
  end = CodedOutputStream::WriteVarint32ToArray(
      static_cast<uint32_t>(payload.size()), end);
  message->append(reinterpret_cast<const char*>(header), end - header);
  message->append(payload);
}

}  // namespace requant
