#include "tests/graph_text.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace requant {
namespace {

std::string Shape(const std::vector<int>& shape) {
  std::string text;
  for (int size : shape) absl::StrAppend(&text, " dim { size: ", size, " }");
  return text;
}

std::string Const(const std::string& name, const std::string& type,
                  const std::vector<int>& shape, const std::string& values) {
  return Node(
      name, "Const", {},
      {{"dtype", absl::StrCat("type: ", type)},
       {"value", absl::StrCat("tensor { dtype: ", type, " tensor_shape {",
                              Shape(shape), " } ", values, " }")}});
}

}  // namespace

std::string Node(const std::string& name, const std::string& op,
                 const std::vector<std::string>& inputs,
                 const std::vector<AttributeText>& attributes) {
  std::string text =
      absl::StrCat("node { name: \"", name, "\" op: \"", op, "\"");
  for (const std::string& input : inputs) {
    absl::StrAppend(&text, " input: \"", input, "\"");
  }
  for (const auto& [key, value] : attributes) {
    absl::StrAppend(&text, " attr { key: \"", key, "\" value { ", value,
                    " } }");
  }
  return absl::StrCat(text, " }\n");
}

std::string Placeholder(const std::string& name,
                        const std::vector<int>& shape) {
  std::vector<AttributeText> attributes = {{"dtype", "type: DT_FLOAT"}};
  if (!shape.empty()) {
    attributes.emplace_back("shape",
                            absl::StrCat("shape {", Shape(shape), " }"));
  }
  return Node(name, "Placeholder", {}, attributes);
}

std::string FloatConst(const std::string& name, const std::vector<int>& shape,
                       const std::vector<float>& values) {
  return Const(name, "DT_FLOAT", shape,
               absl::StrCat("float_val: [", absl::StrJoin(values, ","), "]"));
}

std::string IntConst(const std::string& name, const std::vector<int>& shape,
                     const std::vector<int>& values) {
  return Const(name, "DT_INT32", shape,
               absl::StrCat("int_val: [", absl::StrJoin(values, ","), "]"));
}

}  // namespace requant
