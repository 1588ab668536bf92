#include "graph/testing/graph_text.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "re2/re2.h"

namespace requant {
namespace {

std::string AttributeField(const AttributeText& attribute) {
  return absl::StrCat(" attr { key: \"", attribute.first, "\" value { ",
                      attribute.second, " } }");
}

std::string TypeName(absl::string_view type) {
  return absl::StrCat("DT_", absl::AsciiStrToUpper(type));
}

// Returns a signature's argument; `declared` is "x", "x:int32" or "x:$T".
std::string Argument(const char* field, absl::string_view declared) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(declared, absl::MaxSplits(':', 1));
  const std::string& type = parts.second;
  return absl::StrCat(" ", field, " { name: \"", parts.first, "\" ",
                      type[0] == '$'
                          ? absl::StrCat("type_attr: \"", type.substr(1), "\"")
                          : "type: " + TypeName(type.empty() ? "float" : type),
                      " }");
}

// Splits at commas and strips whitespace.
std::vector<std::string> Parts(absl::string_view list) {
  std::vector<std::string> parts =
      absl::StrSplit(list, ',', absl::SkipWhitespace());
  for (std::string& part : parts) absl::StripAsciiWhitespace(&part);
  return parts;
}

// Returns the content of a TensorShapeProto for "2,?".
std::string ShapeText(absl::string_view sizes) {
  if (sizes == "*") return " unknown_rank: true";
  std::string text;
  for (const std::string& size : Parts(sizes)) {
    absl::StrAppend(&text, " dim { size: ", size == "?" ? "-1" : size, " }");
  }
  return text;
}

// Returns the TensorProto field that holds values of `type`.
std::string ValuesField(const std::string& type) {
  static const auto* fields = new std::map<std::string, std::string>{
      {"bool", "bool_val"}, {"double", "double_val"}, {"float", "float_val"},
      {"half", "half_val"}, {"int64", "int64_val"},   {"string", "string_val"}};
  const auto field = fields->find(type);
  return field == fields->end() ? "int_val" : field->second;
}

// Translates lines of the text format, from the first on, to a text GraphDef.
class Translator {
 public:
  explicit Translator(absl::string_view lines) : rest_(lines) {}

  std::string Text() {
    const std::string nodes = Block(/*in_function=*/false);
    return functions_.empty() ? nodes : nodes + Library(functions_);
  }

 private:
  bool Take(absl::string_view text) {
    return absl::ConsumePrefix(&rest_, text);
  }
  bool Take(const RE2& pattern, std::string* part) {
    return RE2::Consume(&rest_, pattern, part);
  }
  void TakeBlanks() {
    rest_.remove_prefix(
        std::min(rest_.find_first_not_of(" \t\n;"), rest_.size()));
  }
  // Consumes the text up to and including `end`; returns it without `end`.
  absl::string_view TakeUntil(char end) {
    const absl::string_view part = rest_.substr(0, rest_.find(end));
    rest_.remove_prefix(std::min(part.size() + 1, rest_.size()));
    return part;
  }

  // Translates all lines, or those up to the end of a function.
  std::string Block(bool in_function) {
    static const RE2 node("([^\\s=({]+) = "), function("function ([\\w.]+)\\(");
    std::string text, name;
    while (TakeBlanks(), !rest_.empty()) {
      if (Take(node, &name)) {
        absl::StrAppend(&text, NodeText(name));
      } else if (Take(function, &name)) {
        functions_.push_back(FunctionText(name));
      } else if (in_function && Take("}")) {
        break;
      } else {
        absl::StrAppend(&text, TakeUntil('\n'), "\n");
      }
    }
    return text;
  }

  std::string NodeText(const std::string& name) {
    static const RE2 constant("^([a-z]+[0-9]*)[<{]"), op_name("([^\\s(;]+)");
    std::string op = "Const", type;
    std::vector<std::string> inputs;
    std::vector<AttributeText> attributes;
    if (RE2::PartialMatch(rest_, constant, &type)) {
      attributes = {{"dtype", "type: " + TypeName(type)}, {"value", Value()}};
    } else {
      Take(op_name, &op);
      if (Take("(")) inputs = Parts(TakeUntil(')'));
    }
    const std::string device =
        Take(" device:'") ? absl::StrCat(" device: '", TakeUntil('\''), "'")
                          : "";
    for (const AttributeText& more : Attributes()) attributes.push_back(more);
    return absl::StrCat("node {", device,
                        Node(name, op, inputs, attributes).substr(6));
  }

  std::string FunctionText(const std::string& name) {
    const std::vector<std::string> arguments = Parts(TakeUntil(')'));
    TakeUntil('(');
    std::vector<std::pair<std::string, std::string>> results;
    for (const std::string& result : Parts(TakeUntil(')'))) {
      results.push_back(absl::StrSplit(result, absl::MaxSplits('=', 1)));
    }
    TakeUntil('{');
    return Function(name, arguments, results, Block(/*in_function=*/true));
  }

  std::vector<AttributeText> Attributes() {
    static const RE2 start("\\s*([\\w.:]+)=");
    std::vector<AttributeText> attributes;
    std::string key;
    while (Take(start, &key)) attributes.emplace_back(key, Value());
    return attributes;
  }

  // Translates an attribute's value to a field of AttrValue.
  std::string Value() {
    static const RE2 number("(-?[0-9][-+.e0-9]*)"), word("([\\w.]+)");
    std::string text;
    if (Take("[")) return absl::StrCat("list {", List(), " }");
    if (Take("<")) {
      return absl::StrCat("shape {", ShapeText(TakeUntil('>')), " }");
    }
    if (Take("'")) return absl::StrCat("s: '", TakeUntil('\''), "'");
    if (Take(number, &text)) {
      return absl::StrCat(absl::StrContains(text, '.') ? "f: " : "i: ", text);
    }
    if (Take("@")) return FunctionName();
    const bool placeholder = Take("$");
    if (!Take(word, &text)) return "(no value)";
    if (placeholder) return absl::StrCat("placeholder: '", text, "'");
    if (text == "true" || text == "false") return "b: " + text;
    return absl::StartsWith(rest_, "<") || absl::StartsWith(rest_, "{")
               ? Tensor(text)
               : "type: " + TypeName(text);
  }

  // Translates a list's values after the opening bracket.
  std::string List() {
    std::string text;
    while (!rest_.empty() && !Take("]")) {
      absl::StrAppend(&text, " ", Value());
      Take(",");
    }
    return text;
  }

  std::string FunctionName() {
    static const RE2 word("([\\w.]+)");
    std::string name, attributes;
    Take(word, &name);
    if (Take("(")) {
      for (const AttributeText& attribute : Attributes()) {
        attributes += AttributeField(attribute);
      }
      Take(")");
    }
    return absl::StrCat("func { name: '", name, "'", attributes, " }");
  }

  // Translates a tensor's shape and values after its type.
  std::string Tensor(const std::string& type) {
    const std::string shape = Take("<") ? ShapeText(TakeUntil('>')) : "";
    std::string values;
    if (Take("'")) {
      values = absl::StrCat("tensor_content: '", TakeUntil('\''), "'");
    } else if (Take("{")) {
      values = absl::StrCat(ValuesField(type), ": [", TakeUntil('}'), "]");
    }
    return absl::StrCat("tensor { dtype: ", TypeName(type), " tensor_shape {",
                        shape, " } ", values, " }");
  }

  absl::string_view rest_;
  std::vector<std::string> functions_;
};

}  // namespace

std::string GraphText(const std::string& lines) {
  return Translator(lines).Text();
}

std::string Node(const std::string& name, const std::string& op,
                 const std::vector<std::string>& inputs,
                 const std::vector<AttributeText>& attributes) {
  std::string text =
      absl::StrCat("node { name: \"", name, "\" op: \"", op, "\"");
  for (const std::string& input : inputs) {
    absl::StrAppend(&text, " input: \"", input, "\"");
  }
  for (const AttributeText& attribute : attributes) {
    text += AttributeField(attribute);
  }
  return absl::StrCat(text, " }\n");
}

std::string Placeholder(const std::string& name,
                        const std::vector<int>& shape) {
  return GraphText(absl::StrCat(
      name, " = Placeholder dtype=float",
      shape.empty()
          ? ""
          : absl::StrCat(" shape=<", absl::StrJoin(shape, ","), ">")));
}

std::string FloatConst(const std::string& name, const std::vector<int>& shape,
                       const std::vector<float>& values) {
  return GraphText(absl::StrCat(name, " = float<", absl::StrJoin(shape, ","),
                                ">{", absl::StrJoin(values, ","), "}"));
}

std::string IntConst(const std::string& name, const std::vector<int>& shape,
                     const std::vector<int>& values) {
  return GraphText(absl::StrCat(name, " = int32<", absl::StrJoin(shape, ","),
                                ">{", absl::StrJoin(values, ","), "}"));
}

std::string Function(
    const std::string& name, const std::vector<std::string>& arguments,
    const std::vector<std::pair<std::string, std::string>>& results,
    const std::string& body) {
  std::string text =
      absl::StrCat("function { signature { name: \"", name, "\"");
  for (const std::string& argument : arguments) {
    text += Argument("input_arg", argument);
  }
  for (const auto& [result, tensor] : results) {
    text += Argument("output_arg", result);
  }
  absl::StrAppend(&text, " }\n");
  for (const auto& [result, tensor] : results) {
    absl::StrAppend(&text, " ret { key: \"", result.substr(0, result.find(':')),
                    "\" value: \"", tensor, "\" }");
  }
  // Put each node on a line of its own.
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
