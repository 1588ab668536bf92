#include "docker/python_scripts.h"

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/nearest_name.h"

namespace requant {
namespace {

struct Script {
  const char* name;
  const char* room;
  const char* program;
};

constexpr Script kScripts[] = {
    {"featurecolumn_graph_optimization.py", "transforms",
     "featurecolumn_graph_optimization"},
    {"freeze_graph.py", "graph", "freeze_graph"},
    {"launch_benchmark.py", "workflows", "launch_benchmark"},
    {"quantize_graph.py", "transforms", "quantize_graph"},
};

// Python's flags without a value that change nothing for a program that is not
// in Python.
constexpr std::string_view kHarmlessFlags[] = {"-B",  "-E", "-I", "-O",
                                               "-OO", "-s", "-S", "-u"};

bool IsHarmless(std::string_view arg) {
  for (std::string_view flag : kHarmlessFlags) {
    if (arg == flag) return true;
  }
  return false;
}

absl::Status NoPython(const std::string& what, const std::string& guess = "") {
  return absl::NotFoundError(
      absl::StrCat(what, guess,
                   ": there is no Python in this image; of the recipe's "
                   "scripts it knows ",
                   absl::StrJoin(KnownScripts(), ", "),
                   ", and requant help lists its programs"));
}

}  // namespace

std::vector<std::string> KnownScripts() {
  std::vector<std::string> names;
  for (const Script& script : kScripts) names.push_back(script.name);
  return names;
}

absl::StatusOr<ScriptCommand> ScriptCommandOf(
    const std::vector<std::string>& args) {
  size_t at = 0;
  while (at < args.size() && IsHarmless(args[at])) ++at;
  if (at == args.size()) return NoPython("no script is given");
  const std::string& path = args[at];
  if (path[0] == '-') return NoPython(absl::StrCat("cannot do ", path));
  const std::string name = path.substr(path.rfind('/') + 1);
  for (const Script& script : kScripts) {
    if (name != script.name) continue;
    return ScriptCommand{
        script.room, script.program, {args.begin() + at + 1, args.end()}};
  }
  return NoPython(absl::StrCat("cannot run ", path),
                  DidYouMean(name, KnownScripts()));
}

}  // namespace requant
