#include "graph/testing/graph_text.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

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

std::string Function(
    const std::string& name, const std::vector<std::string>& arguments,
    const std::vector<std::pair<std::string, std::string>>& results,
    const std::string& body) {
  std::string text =
      absl::StrCat("function { signature { name: \"", name, "\"");
  for (const std::string& argument : arguments) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(argument, absl::MaxSplits(':', 1));
    absl::StrAppend(&text, " input_arg { name: \"", parts.first, "\" type: ",
                    parts.second.empty() ? "DT_FLOAT" : parts.second, " }");
  }
  for (const auto& [result, tensor] : results) {
    absl::StrAppend(&text, " output_arg { name: \"", result,
                    "\" type: DT_FLOAT }");
  }
  absl::StrAppend(&text, " }\n");
  for (const auto& [result, tensor] : results) {
    absl::StrAppend(&text, " ret { key: \"", result, "\" value: \"", tensor,
                    "\" }");
  }
  // Each node starts a line.
  return absl::StrCat(text, "\n",
                      absl::StrReplaceAll(absl::StrCat("\n", body),
                                          {{"\nnode {", "\nnode_def {"}}),
                      "}\n");
}

std::string Library(const std::vector<std::string>& functions) {
  return absl::StrCat("library {\n", absl::StrJoin(functions, ""), "}\n");
}

std::string Call(const std::string& name, const std::string& function,
                 const std::vector<std::string>& inputs,
                 const std::string& input_types, int outputs) {
  const std::vector<std::string> given(inputs.size(), "DT_FLOAT");
  const std::vector<std::string> got(outputs, "DT_FLOAT");
  return Node(
      name, "StatefulPartitionedCall", inputs,
      {{"f", absl::StrCat("func { name: \"", function, "\" }")},
       {"Tin", absl::StrCat("list { type: [",
                            input_types.empty() ? absl::StrJoin(given, ",")
                                                : input_types,
                            "] }")},
       {"Tout",
        absl::StrCat("list { type: [", absl::StrJoin(got, ","), "] }")}});
}

}  // namespace requant
