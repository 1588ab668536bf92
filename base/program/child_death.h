#ifndef REQUANT_BASE_PROGRAM_CHILD_DEATH_H_
#define REQUANT_BASE_PROGRAM_CHILD_DEATH_H_

// Explains in one sentence why a process that runs TensorFlow died, from its
// result and its stderr.

#include <functional>
#include <string>
#include <string_view>

#include "base/process/machine.h"
#include "base/process/subprocess.h"

namespace requant {

// Returns whether TensorFlow's libraries print this line whatever a program
// does, or protobuf prints it about a file that turns out to be of another
// kind.
bool IsTensorFlowNoise(std::string_view line);

// Returns whether a process that writes this line is about to abort; if so,
// sets `reason` to the message without its time and source location.
bool IsLastWord(std::string_view line, std::string* reason);

// The death of a process that ran a graph.
struct ChildDeath {
  ChildResult result;
  // The limits it had.
  ChildOptions options;
  // What it was doing, for example "running model.pb".
  std::string activity;
  // The end of what it wrote to stderr, and the path of the full log, if there
  // is any.
  std::string log_tail;
  std::string log_path;
  // Whether the sentence names the flags that set the limits.
  bool names_flags = true;
};

// Returns the sentence. `probe`, which examines the CPU, is called for illegal
// instructions only.
std::string ExplainDeath(const ChildDeath& death,
                         const std::function<CpuFeatures()>& probe = ProbeCpu);

}  // namespace requant

#endif  // REQUANT_BASE_PROGRAM_CHILD_DEATH_H_
