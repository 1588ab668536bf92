#ifndef REQUANT_BASE_PROGRAM_FLAGS_H_
#define REQUANT_BASE_PROGRAM_FLAGS_H_

// Wraps gflags for command-line programs: an unknown flag or bad value gives
// one sentence and exit code 2, and --help shows only the program's own flags.

#include <errno.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace requant {

// Exit codes of every program.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitAccuracyGate = 3;

// Returns the name of this program as it was typed: "requant quantize" if
// requant became it (base/process/sibling_program.h), else the last part of its
// path, such as "quantize_model".
inline const char* ProgramName() { return program_invocation_short_name; }

struct ProgramHelp {
  // The name as typed, such as "transform_graph" or "requant doctor".
  std::string name;
  // What the program does, in a sentence or two.
  std::string summary;
  // Example command lines, one per line, in which "$0" stands for the name.
  std::string usage;
  // The source files (__FILE__) whose flags are listed.
  std::vector<std::string> flag_files;
  // Text that is shown after the flags.
  std::string footer;
  // String flags that may be given several times: their values are joined by
  // commas, so that --graph=a --graph=b means --graph=a,b.
  std::vector<std::string> repeatable_flags = {};
  // Flags of `flag_files` that are not listed.
  std::vector<std::string> hidden_flags = {};
  // Other spellings of flags, which are not listed either: {"out", "output"}
  // lets --out=x mean --output=x.
  std::vector<std::pair<std::string, std::string>> aliases = {};
  // What flags do in this program, instead of what their definitions say.
  std::vector<std::pair<std::string, std::string>> descriptions = {};
};

// Sets gflags' flags from `args` (without the program name) and puts the other
// arguments into `positional`. Accepts --name=value, --name value, --flag and
// --noflag for bools, dashes for underscores, and one dash for two; "--" ends
// the flags and a lone "-" is positional. Returns an exit code if the program
// must end now (after --help, --version, or an error that has been printed to
// stderr). This call also guards the terminal (base/terminal_guard.h).
std::optional<int> ParseFlags(const std::vector<std::string>& args,
                              const ProgramHelp& help,
                              std::vector<std::string>* positional);

// Does the same for main's argc and argv.
std::optional<int> ParseFlags(int argc, char** argv, const ProgramHelp& help,
                              std::vector<std::string>* positional);

// Parses the value of a flag that takes True or False after a space, as flags
// of Python programs do but gflags' bools do not. Returns true, false (for
// true, 1, yes, false, 0, no in any case), or nullopt.
std::optional<bool> ParseTruth(std::string_view text);

// Returns the text that --help prints.
std::string HelpText(const ProgramHelp& help);

// Prints "<program>: <text>" to stderr as one line, whatever the text contains
// (see Printable in base/text/printable.h).
void Say(std::string_view program, std::string_view text);

// Makes Say pass its lines, without line breaks, to `sayer`. It must be called
// before threads start.
void SetSayer(void (*sayer)(std::string_view line));

// Prints the status's message and, for a system limit (ulimit), what to do
// about it; returns kExitFailed.
int ReportFailure(std::string_view program, const absl::Status& status);

// Prints "<message>; see <program> --help"; returns kExitUsage.
int ReportUsage(std::string_view program, std::string_view message);

// Flushes stdout; called at the end of main with its exit code. If any output
// was lost, prints an error to stderr and turns kExitOk into kExitFailed.
int FinishOutput(std::string_view program, int exit_code);

}  // namespace requant

#endif  // REQUANT_BASE_PROGRAM_FLAGS_H_
