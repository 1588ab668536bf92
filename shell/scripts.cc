#include "shell/scripts.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/text/nearest_name.h"

namespace requant {
namespace {

namespace fs = std::filesystem;

// An argument that a script gets by default.
struct Default {
  // "--flag" or "--flag=value".
  const char* argument;
  // Applies only with this flag; nullptr means always.
  const char* with = nullptr;
};

struct Script {
  const char* name;
  const char* folder;
  const char* program;
  std::vector<Default> defaults = {};
  bool is_common_name = false;
};

const std::vector<Script>& Scripts() {
  static const auto* scripts = new std::vector<Script>{
      {"convert.py",
       "runtime",
       "convert_model",
       {{"--saved_model=./gpt-j-6B"},
        {"--overwrite_own"},
        {"--ops=MatMul", "--insert_qdq"},
        {"--inputs=activations", "--insert_qdq"}},
       true},
      {"dump_graph_from_saved_model.py", "graph", "dump_graph", {}, true},
      {"featurecolumn_graph_optimization.py", "transforms",
       "featurecolumn_graph_optimization"},
      {"freeze_graph.py", "graph", "freeze_graph"},
      {"launch_benchmark.py", "workflows", "launch_benchmark"},
      {"launch_quantization.py", "launch", "launch_quantization"},
      {"pb_to_pbtxt.py", "graph", "pb_to_pbtxt", {}, true},
      {"prepare_model.py", "", "", {}, true},
      {"quantize_graph.py", "transforms", "quantize_graph"},
      {"run_benchmark.py",
       "runtime",
       "benchmark_graph",
       {{"--saved_model=./gpt-j-6B,./converted_gpt-j-6B"},
        {"--name=gpt-j"},
        {"--rounds=3"},
        {"--tokens=."}},
       true},
  };
  return *scripts;
}

// Python's flags without a value that make no difference to a program that is
// not in Python.
constexpr std::string_view kHarmlessFlags[] = {"-B",  "-E", "-I", "-O",
                                               "-OO", "-s", "-S", "-u"};

// Returns the index of the first argument that is not a harmless flag.
size_t SkipHarmless(const std::vector<std::string>& args) {
  size_t at = 0;
  while (at < args.size() &&
         std::count(std::begin(kHarmlessFlags), std::end(kHarmlessFlags),
                    args[at]) > 0) {
    ++at;
  }
  return at;
}

// Returns "a_flag" for "--a-flag=value" or "-a-flag"; "" if it is no flag.
std::string FlagName(std::string_view argument) {
  if (!absl::ConsumePrefix(&argument, "-")) return "";
  absl::ConsumePrefix(&argument, "-");
  return absl::StrReplaceAll(argument.substr(0, argument.find('=')),
                             {{"-", "_"}});
}

bool HasFlag(const std::vector<std::string>& args, const char* argument) {
  return std::any_of(args.begin(), args.end(), [&](const std::string& arg) {
    return FlagName(arg) == FlagName(argument);
  });
}

std::string NameOf(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::vector<std::string> KnownScripts() {
  std::vector<std::string> names;
  for (const Script& script : Scripts()) names.push_back(script.name);
  return names;
}

}  // namespace

std::optional<ScriptCommand> ScriptCommandOf(
    const std::vector<std::string>& args) {
  const size_t at = SkipHarmless(args);
  if (at == args.size()) return std::nullopt;
  const std::vector<std::string> given(args.begin() + at + 1, args.end());
  for (const Script& script : Scripts()) {
    if (NameOf(args[at]) != script.name) continue;
    ScriptCommand command = {
        args[at], script.folder, script.program, {}, script.is_common_name};
    for (const Default& one : script.defaults) {
      if (HasFlag(given, one.argument)) continue;
      if (one.with != nullptr && !HasFlag(given, one.with)) continue;
      command.arguments.push_back(one.argument);
    }
    command.arguments.insert(command.arguments.end(), given.begin(),
                             given.end());
    return command;
  }
  return std::nullopt;
}

std::string RealPython(const std::string& name, const std::string& search_path,
                       const std::string& own_folder) {
  std::vector<std::string_view> folders = absl::StrSplit(search_path, ':');
  // Another session's python may precede this one's on PATH and would come back
  // here.
  const auto own = std::find_if(
      folders.begin(), folders.end(), [&](std::string_view folder) {
        std::error_code error;
        return !folder.empty() && fs::canonical(folder, error) == own_folder;
      });
  if (own != folders.end()) folders.erase(folders.begin(), own + 1);
  for (const std::string& wanted :
       {name, std::string("python3"), std::string("python")}) {
    for (const std::string_view folder : folders) {
      const std::string path = absl::StrCat(folder, "/", wanted);
      std::error_code error;
      if (folder.empty() || !fs::is_regular_file(path, error) ||
          access(path.c_str(), X_OK) != 0) {
        continue;
      }
      if (fs::canonical(path, error).parent_path() == own_folder) continue;
      return path;
    }
  }
  return "";
}

absl::Status NoPythonError(const std::vector<std::string>& args) {
  const size_t at = SkipHarmless(args);
  std::string what = "no script is given";
  if (at < args.size()) {
    const std::string& path = args[at];
    what = path.substr(0, 1) == "-"
               ? absl::StrCat("cannot do ", path)
               : absl::StrCat("cannot run ", path,
                              DidYouMean(NameOf(path), KnownScripts()));
  }
  return absl::NotFoundError(absl::StrCat(
      what, ": there is no Python here; of the published scripts it knows ",
      absl::StrJoin(KnownScripts(), ", "),
      ", and requant help lists its programs"));
}

}  // namespace requant
