#ifndef REQUANT_LAUNCH_EXPLAIN_END_H_
#define REQUANT_LAUNCH_EXPLAIN_END_H_

#include <string>

#include "launch/container_command.h"
#include "launch/supervisor.h"

namespace requant::launch {

// What an exit code that engines give a meaning to says, and what to do; "" for
// others. A shell that a person ended passes on the code of the last command
// in it, which needs no explanation.
std::string ExplainEnd(const Session& session, const SessionEnd& end);

}  // namespace requant::launch

#endif  // REQUANT_LAUNCH_EXPLAIN_END_H_
