#ifndef REQUANT_RUNTIME_BENCHMARK_CORE_WAIT_H_
#define REQUANT_RUNTIME_BENCHMARK_CORE_WAIT_H_

#include <optional>
#include <string>

namespace requant {

// How many seconds the threads of this process, those that live now, have been
// ready to run while all cores were busy: on a machine that others use, the
// part of the time that says nothing about a graph. Unset where Linux does not
// tell.
std::optional<double> CoreWaitSeconds(
    const std::string& tasks_folder = "/proc/self/task");

}  // namespace requant

#endif  // REQUANT_RUNTIME_BENCHMARK_CORE_WAIT_H_
