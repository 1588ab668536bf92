#include "base/message/message_json.h"

#include "absl/strings/ascii.h"
#include "base/json.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/text_format.h"

namespace requant {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::TextFormat;

bool IsInterval(const Descriptor& type) {
  return type.field_count() == 2 && type.field(0)->name() == "low" &&
         type.field(1)->name() == "high";
}

std::string EnumJson(const EnumValueDescriptor& value) {
  if (value.name() == "NONE") return "null";
  return JsonString(absl::AsciiStrToLower(value.name()));
}

std::string ObjectOrArray(const Message& message) {
  if (!IsInterval(*message.GetDescriptor())) return MessageJson(message);
  std::vector<std::string> ends;
  for (const auto& [name, value] : MessageMembers(message)) {
    ends.push_back(value);
  }
  return JsonArray(ends);
}

// Returns whether the field is declared "optional" in the .proto file, for
// which protoc adds a synthetic oneof.
bool IsOptional(const FieldDescriptor& field) {
  return field.containing_oneof() != nullptr &&
         field.real_containing_oneof() == nullptr;
}

// Returns the value of a field, or element `i` of a repeated field.
std::string ValueJson(const Message& message, const FieldDescriptor* field,
                      int i) {
  const Reflection& get = *message.GetReflection();
  const bool many = field->is_repeated();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return JsonNumber(many ? get.GetRepeatedDouble(message, field, i)
                             : get.GetDouble(message, field));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return JsonNumber(many ? get.GetRepeatedFloat(message, field, i)
                             : get.GetFloat(message, field));
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumJson(many ? *get.GetRepeatedEnum(message, field, i)
                           : *get.GetEnum(message, field));
    case FieldDescriptor::CPPTYPE_STRING:
      return JsonString(many ? get.GetRepeatedString(message, field, i)
                             : get.GetString(message, field));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ObjectOrArray(many ? get.GetRepeatedMessage(message, field, i)
                                : get.GetMessage(message, field));
    default:
      break;
  }
  // Integers and Booleans are written alike in text format and JSON.
  std::string text;
  TextFormat::PrintFieldValueToString(message, field, many ? i : -1, &text);
  return text;
}

std::string FieldJson(const Message& message, const FieldDescriptor* field) {
  const Reflection& get = *message.GetReflection();
  if (field->is_repeated()) {
    std::vector<std::string> values;
    for (int i = 0; i < get.FieldSize(message, field); ++i) {
      values.push_back(ValueJson(message, field, i));
    }
    return JsonArray(values);
  }
  if (!IsOptional(*field)) return ValueJson(message, field, 0);
  const std::string value =
      get.HasField(message, field) ? ValueJson(message, field, 0) : "null";
  return value == "\"\"" ? "null" : value;
}

}  // namespace

JsonMembers MessageMembers(const Message& message) {
  JsonMembers members;
  const Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* const field = type.field(i);
    members.emplace_back(
        field->has_json_name() ? field->json_name() : field->name(),
        FieldJson(message, field));
  }
  return members;
}

std::string MessageJson(const Message& message) {
  return JsonObject(MessageMembers(message));
}

}  // namespace requant
