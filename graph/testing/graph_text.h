#ifndef REQUANT_GRAPH_TESTING_GRAPH_TEXT_H_
#define REQUANT_GRAPH_TESTING_GRAPH_TEXT_H_

// Nodes of a text GraphDef, for tests whose graphs would fill pages otherwise.

#include <string>
#include <utility>
#include <vector>

namespace requant {

// An attribute and its value as text: {"T", "type: DT_FLOAT"}.
using AttributeText = std::pair<std::string, std::string>;

inline const AttributeText kFloat = {"T", "type: DT_FLOAT"};

std::string Node(const std::string& name, const std::string& op,
                 const std::vector<std::string>& inputs,
                 const std::vector<AttributeText>& attributes = {});

// Of unknown shape, unless given.
std::string Placeholder(const std::string& name,
                        const std::vector<int>& shape = {});
std::string FloatConst(const std::string& name, const std::vector<int>& shape,
                       const std::vector<float>& values);
std::string IntConst(const std::string& name, const std::vector<int>& shape,
                     const std::vector<int>& values);

// A function of float tensors, to stand in a Library. `arguments` and the keys
// of `results` are names; an argument "x:DT_RESOURCE" has another type than
// float. `body` is of Node and the like.
std::string Function(
    const std::string& name, const std::vector<std::string>& arguments,
    const std::vector<std::pair<std::string, std::string>>& results,
    const std::string& body);
std::string Library(const std::vector<std::string>& functions);

// A call of a function from a graph or a body; `input_types` ("DT_FLOAT,
// DT_RESOURCE") are all float when empty.
std::string Call(const std::string& name, const std::string& function,
                 const std::vector<std::string>& inputs,
                 const std::string& input_types = "", int outputs = 1);

}  // namespace requant

#endif  // REQUANT_GRAPH_TESTING_GRAPH_TEXT_H_
