#ifndef REQUANT_TRANSFORMS_PIPELINE_PARSER_H_
#define REQUANT_TRANSFORMS_PIPELINE_PARSER_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace requant {

// One transform call as the user wrote it.
struct TransformCall {
  std::string name;
  std::map<std::string, std::vector<std::string>> parameters;
};

// Parses TensorFlow's transform strings, such as
//   strip_unused_nodes remove_nodes(op=Identity, op=CheckNumerics)
//   insert_logging(op=Min, message="__min:")
// Blanks, line breaks and backslashes before line breaks are separators; values
// may be in double quotes, in which \" and \\ stand for a quote and a
// backslash. Commas between parameters are optional, as in the original. Errors
// show the place.
absl::StatusOr<std::vector<TransformCall>> ParsePipeline(std::string_view text);

// Parses a list of names as people paste it: separated by commas, and possibly
// surrounded by blanks, line breaks and backslashes.
std::vector<std::string> ParseNameList(std::string_view text);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_PIPELINE_PARSER_H_
