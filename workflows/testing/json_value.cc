#include "workflows/testing/json_value.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/json/json.h"
#include "google/protobuf/struct.pb.h"

namespace requant {

google::protobuf::Value ParseJson(const std::string& text) {
  google::protobuf::Value value;
  const absl::Status status =
      google::protobuf::json::JsonStringToMessage(text, &value);
  EXPECT_TRUE(status.ok()) << status;
  return value;
}

const google::protobuf::Value& At(const google::protobuf::Value& value,
                                  std::string_view path) {
  static const auto* null = new google::protobuf::Value;
  const google::protobuf::Value* at = &value;
  for (const std::string_view step : absl::StrSplit(path, '/')) {
    int index = -1;
    const auto& fields = at->struct_value().fields();
    const auto member = fields.find(std::string(step));
    if (member != fields.end()) {
      at = &member->second;
    } else if (absl::SimpleAtoi(step, &index) && index >= 0 &&
               index < at->list_value().values_size()) {
      at = &at->list_value().values(index);
    } else {
      ADD_FAILURE() << "nothing at \"" << step << "\" of " << path;
      return *null;
    }
  }
  return *at;
}

}  // namespace requant
