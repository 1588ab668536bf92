#include "base/message/message_json.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/json.h"
#include "google/protobuf/descriptor.h"

namespace requant {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

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

// Returns whether the .proto file has the word "optional" in front of it, for
// which protoc makes a oneof that the file does not have.
bool IsOptional(const FieldDescriptor& field) {
  return field.containing_oneof() != nullptr &&
         field.real_containing_oneof() == nullptr;
}

// Returns the value of a field, or, of a repeated field, its value number `i`.
std::string ValueJson(const Message& message, const FieldDescriptor* field,
                      int i) {
  const Reflection& get = *message.GetReflection();
  const bool many = field->is_repeated();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return absl::StrCat(many ? get.GetRepeatedInt32(message, field, i)
                               : get.GetInt32(message, field));
    case FieldDescriptor::CPPTYPE_INT64:
      return absl::StrCat(many ? get.GetRepeatedInt64(message, field, i)
                               : get.GetInt64(message, field));
    case FieldDescriptor::CPPTYPE_UINT32:
      return absl::StrCat(many ? get.GetRepeatedUInt32(message, field, i)
                               : get.GetUInt32(message, field));
    case FieldDescriptor::CPPTYPE_UINT64:
      return absl::StrCat(many ? get.GetRepeatedUInt64(message, field, i)
                               : get.GetUInt64(message, field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return JsonNumber(many ? get.GetRepeatedDouble(message, field, i)
                             : get.GetDouble(message, field));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return JsonNumber(many ? get.GetRepeatedFloat(message, field, i)
                             : get.GetFloat(message, field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return (many ? get.GetRepeatedBool(message, field, i)
                   : get.GetBool(message, field))
                 ? "true"
                 : "false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumJson(many ? *get.GetRepeatedEnum(message, field, i)
                           : *get.GetEnum(message, field));
    case FieldDescriptor::CPPTYPE_STRING:
      return JsonString(many ? get.GetRepeatedString(message, field, i)
                             : get.GetString(message, field));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ObjectOrArray(many ? get.GetRepeatedMessage(message, field, i)
                                : get.GetMessage(message, field));
  }
  return "null";
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
