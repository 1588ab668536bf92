#ifndef REQUANT_BASE_MESSAGE_MESSAGE_JSON_H_
#define REQUANT_BASE_MESSAGE_MESSAGE_JSON_H_

// Prints messages as JSON for other programs. Unlike protobuf's own JSON, this
// includes unset fields and prints bytes as text.

#include <string>
#include <utility>
#include <vector>

#include "google/protobuf/message.h"

namespace requant {

// Pairs of a name and a JSON value, as JsonObject takes them.
using JsonMembers = std::vector<std::pair<std::string, std::string>>;

// Returns the fields in the order in which the .proto file declares them, each
// under its explicit json_name or else its own name.
//
// Optional fields that are unset or empty text, numbers that JSON cannot hold,
// and the enum value NONE are null. Other enum values are their names in lower
// case. A message whose two fields are low and high is printed as an array of
// these two values.
JsonMembers MessageMembers(const google::protobuf::Message& message);

// Returns an object with these members, on one line.
std::string MessageJson(const google::protobuf::Message& message);

}  // namespace requant

#endif  // REQUANT_BASE_MESSAGE_MESSAGE_JSON_H_
