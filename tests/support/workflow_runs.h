#ifndef REQUANT_TESTS_SUPPORT_WORKFLOW_RUNS_H_
#define REQUANT_TESTS_SUPPORT_WORKFLOW_RUNS_H_

// For tests of `requant run` on the workflows that the repository carries.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/testing/program.h"

namespace requant {

inline constexpr char kRequant[] = "workflows/requant";

// The arguments of a run of the published recipe on few records.
std::vector<std::string> SmallRun(const std::string& work_dir,
                                  const std::string& out,
                                  const std::vector<std::string>& more = {});

ProgramRun RunSmall(const std::string& work_dir, const std::string& out,
                    const std::vector<std::string>& more = {});

// The tasks that a run did, by what it says on stderr. Those that it took from
// the cache are not among them.
std::set<std::string> TasksDone(const std::string& error);

// The content of the graphs and range tables in a run's folder, by name.
std::map<std::string, std::string> GraphsAndRanges(const std::string& out);

}  // namespace requant

#endif  // REQUANT_TESTS_SUPPORT_WORKFLOW_RUNS_H_
