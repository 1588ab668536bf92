#ifndef REQUANT_WORKFLOWS_TESTING_JSON_VALUE_H_
#define REQUANT_WORKFLOWS_TESTING_JSON_VALUE_H_

// Reading JSON in tests.

#include <string>
#include <string_view>

#include "google/protobuf/struct.pb.h"

namespace requant {

// Returns the value of a JSON text; an invalid text fails the test.
google::protobuf::Value ParseJson(const std::string& text);

// Returns the value at a path such as "stages/3/figures/accuracy" (members'
// names, elements' indices). A missing value is null and fails the test.
const google::protobuf::Value& At(const google::protobuf::Value& value,
                                  std::string_view path);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_TESTING_JSON_VALUE_H_
