#ifndef REQUANT_TESTS_SUPPORT_TINY_WORKFLOW_H_
#define REQUANT_TESTS_SUPPORT_TINY_WORKFLOW_H_

// A workflow that takes seconds and has an output of every kind: texts, graphs,
// a SavedModel, ranges, predictions and verdicts. One of its gates fails.

#include <string>
#include <vector>

#include "graph/testing/program.h"

namespace requant {

// In a folder of its own, with the work folder "work" and the run's folder
// "out".
class TinyWorkflow {
 public:
  TinyWorkflow();

  // `requant run` of the workflow, to its end.
  ProgramRun Run(const std::vector<std::string>& more = {}) const;
  // The arguments of that.
  std::vector<std::string> Arguments() const;

  TestFolder folder;
};

}  // namespace requant

#endif  // REQUANT_TESTS_SUPPORT_TINY_WORKFLOW_H_
