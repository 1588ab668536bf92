#ifndef REQUANT_GRAPH_TESTING_PROGRAM_H_
#define REQUANT_GRAPH_TESTING_PROGRAM_H_

// For end-to-end tests: runs programs as people do, in a test folder.

#include <string>
#include <vector>

#include "graph/testing/testing.h"

namespace requant {

inline constexpr char kTransformGraph[] = "transforms/transform_graph";

struct ProgramRun {
  // The code as a shell gives it: 128 + n after signal n.
  int exit_code = -1;
  std::string out;
  std::string error;
};

// Matches a run that ended with `code` and wrote `error` to stderr.
MATCHER_P(Exits, code,
          absl::StrCat(negation ? "does not exit" : "exits", " with ", code)) {
  *result_listener << "which exits with " << arg.exit_code << ": " << arg.error;
  return arg.exit_code == code;
}
MATCHER_P2(Exits, code, error,
           absl::StrCat("exits with ", code, " and a stderr that ",
                        testing::DescribeMatcher<std::string>(error,
                                                              negation))) {
  *result_listener << "which exits with " << arg.exit_code << ": " << arg.error;
  return arg.exit_code == code && testing::Value(arg.error, error);
}

// Returns the command line for `program` in the user's environment: without
// what base/process/tensorflow_environment.cc sets for this process, but with
// `variables` ("NAME=value").
std::vector<std::string> CommandLine(
    const std::string& program, const std::vector<std::string>& arguments,
    const std::vector<std::string>& variables = {});

// Runs the program to its end.
ProgramRun RunProgram(const std::string& program,
                      const std::vector<std::string>& arguments,
                      const std::vector<std::string>& variables = {});

// Makes a child's segmentation fault look like one in sanitized builds too.
void LetSegfaultsPass();

// A scratch folder that can also write graphs.
class TestFolder : public ScratchFolder {
 public:
  // Clang requires this for constants without an initializer.
  TestFolder() {}
  std::string WriteText(const std::string& name, const GraphDef& graph) const;
  GraphDef ReadGraphFile(const std::string& name) const;
};

// Runs transform_graph in a folder of its own.
class TransformGraphRunner {
 public:
  // Writes `graph` to g.pbtxt and runs transform_graph on it, into out.pb.
  ProgramRun Transform(const std::string& transforms, const GraphDef& graph,
                       const std::vector<std::string>& more_arguments = {},
                       const std::string& program = kTransformGraph);

  TestFolder folder;
};

}  // namespace requant

#endif  // REQUANT_GRAPH_TESTING_PROGRAM_H_
