#include "launch/explain_end.h"

#include <signal.h>

#include <string>

#include "base/text/shell_quote.h"

namespace requant::launch {

std::string ExplainEnd(const Session& session, const SessionEnd& end) {
  const Options& options = session.options;
  const std::string name = EngineName(session.engine.kind);
  if (end.exit_code == 125) {
    return name +
           " did not start the container (exit code 125): its reason is above";
  }
  if (!options.test && options.command.empty()) return "";
  const std::string program =
      options.test ? kSelfTest : ShellQuoted(options.command.front());
  switch (end.exit_code) {
    case 126:
      return program +
             " could not be started in the container (exit code 126): the "
             "reason is above";
    case 127:
      return program + " was not found in the container (exit code 127): " +
             (options.test ? "is " + options.image + " an image of Requant?"
                           : "check the name");
    case 128 + SIGKILL:
      if (end.signal != 0) return "";
      return program +
             " was killed (exit code 137): if it needed more memory than the "
             "container has, raise --memory";
    default:
      return "";
  }
}

}  // namespace requant::launch
