#ifndef REQUANT_BASE_MESSAGE_MESSAGE_JSON_H_
#define REQUANT_BASE_MESSAGE_MESSAGE_JSON_H_

// Messages as JSON for other programs. Unlike protobuf's own JSON, it has all
// fields, those that are not set too, and bytes as text.

#include <string>
#include <utility>
#include <vector>

#include "google/protobuf/message.h"

namespace requant {

// Pairs of a name and a value that is JSON already, as JsonObject takes them.
using JsonMembers = std::vector<std::pair<std::string, std::string>>;

// Returns the fields in the order in which the .proto file declares them, each
// by the json_name that it gives or else by the field's own name.
//
// A field that is declared optional and is not set, or is empty text, is null,
// as are numbers that JSON cannot hold and an enum's value NONE. Other values
// of enums are their names in small letters. A message with the two fields low
// and high, an interval, is an array of these.
JsonMembers MessageMembers(const google::protobuf::Message& message);

// Returns the object of these members, on one line.
std::string MessageJson(const google::protobuf::Message& message);

}  // namespace requant

#endif  // REQUANT_BASE_MESSAGE_MESSAGE_JSON_H_
