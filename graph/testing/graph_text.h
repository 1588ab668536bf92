#ifndef REQUANT_GRAPH_TESTING_GRAPH_TEXT_H_
#define REQUANT_GRAPH_TESTING_GRAPH_TEXT_H_

// A text format for graphs with a line per node, for tests whose graphs would
// be pages long as text GraphDefs.
//
//   x = Placeholder dtype=float shape=<?,3>
//   w = float<3,2>{1,2,3,4,5,6}
//   m = MatMul(x, w, ^init) T=float transpose_b=true
//   function half(a, i:int32) -> (y=scaled:z:0, n:int32=i) {
//     scaled = Mul(a, a) T=float
//   }
//
// The line of `w` defines a Const. Attributes have these values: 3, 3.5, true,
// 'text', the type float, the shape <2,?> (<> for a scalar, <*> for unknown
// rank), the tensor float<2>{1,2} or int32{7} (float<1>'\000\000\200?' gives
// the values as bytes), the function @name or @name(T=float), a function's
// attribute $T, and lists of them as in [float,float]. Attributes may continue
// on the next line; a device precedes them (device:'/cpu:0'). Arguments and
// results of functions are float unless their type is given. Semicolons
// separate nodes on the same line. All other lines are copied as parts of a
// text GraphDef.

#include <string>
#include <utility>
#include <vector>

namespace requant {

// Returns the text GraphDef for lines in this format; an invalid one gives a
// text that does not parse.
std::string GraphText(const std::string& lines);

// An attribute's name and its value as text: {"T", "type: DT_FLOAT"}.
using AttributeText = std::pair<std::string, std::string>;

inline const AttributeText kFloat = {"T", "type: DT_FLOAT"};

std::string Node(const std::string& name, const std::string& op,
                 const std::vector<std::string>& inputs,
                 const std::vector<AttributeText>& attributes = {});

// Returns a Placeholder, with unknown shape unless one is given.
std::string Placeholder(const std::string& name,
                        const std::vector<int>& shape = {});
std::string FloatConst(const std::string& name, const std::vector<int>& shape,
                       const std::vector<float>& values);
std::string IntConst(const std::string& name, const std::vector<int>& shape,
                     const std::vector<int>& values);

// Returns a function for a Library. `arguments` and the keys of `results` are
// names of float tensors, or names with types ("x:resource"). `body` consists
// of Node and the like.
std::string Function(
    const std::string& name, const std::vector<std::string>& arguments,
    const std::vector<std::pair<std::string, std::string>>& results,
    const std::string& body);
std::string Library(const std::vector<std::string>& functions);

// Returns a function call for a graph or a body; `input_types` ("DT_FLOAT,
// DT_RESOURCE") are all float if empty.
std::string Call(const std::string& name, const std::string& function,
                 const std::vector<std::string>& inputs,
                 const std::string& input_types = "", int outputs = 1);

}  // namespace requant

#endif  // REQUANT_GRAPH_TESTING_GRAPH_TEXT_H_
