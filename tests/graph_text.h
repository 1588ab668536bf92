#ifndef REQUANT_TESTS_GRAPH_TEXT_H_
#define REQUANT_TESTS_GRAPH_TEXT_H_

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

}  // namespace requant

#endif  // REQUANT_TESTS_GRAPH_TEXT_H_
