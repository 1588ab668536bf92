#ifndef REQUANT_BASE_PROGRAM_FLAGS_H_
#define REQUANT_BASE_PROGRAM_FLAGS_H_

// gflags' flags for programs that people type: an unknown flag or a bad value
// is one sentence and exit code 2, and --help shows only the program's own
// flags.

#include <errno.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace requant {

// Exit codes of every program.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitAccuracyGate = 3;

// Returns the name of this program as it was typed: "requant quantize" when
// requant became it (base/process/sibling_program.h), else the last part of its
// path, such as "quantize_model".
inline const char* ProgramName() { return program_invocation_short_name; }

struct ProgramHelp {
  // As typed, such as "transform_graph" or "requant doctor".
  std::string name;
  // What it does, in a sentence or two.
  std::string summary;
  // Example command lines, one per line, in which "$0" stands for the name.
  std::string usage;
  // Flags defined in these source files (__FILE__) are listed.
  std::vector<std::string> flag_files;
  // Shown after the flags.
  std::string footer;
  // String flags that may be given several times: their values are joined by
  // commas, so that --graph=a --graph=b is --graph=a,b.
  std::vector<std::string> repeatable_flags = {};
  // Flags of `flag_files` that are not listed.
  std::vector<std::string> hidden_flags = {};
};

// Sets gflags' flags from `args` (which has no program name) and leaves what is
// not a flag in `positional`. Accepts --name=value, --name value, --flag and
// --noflag for bools, dashes for underscores, one dash for two; "--" ends the
// flags and a lone "-" is positional. Returns an exit code when the program is
// to end now (after --help, --version, or an error that has been printed to
// stderr). From this call on the terminal is guarded (base/terminal_guard.h).
std::optional<int> ParseFlags(const std::vector<std::string>& args,
                              const ProgramHelp& help,
                              std::vector<std::string>* positional);

// Does the same for main's argc and argv.
std::optional<int> ParseFlags(int argc, char** argv, const ProgramHelp& help,
                              std::vector<std::string>* positional);

// Returns the value of a flag that takes True or False after a space, as flags
// of Python programs do and gflags' own bools do not: true, 1, yes, false, 0 or
// no in any case, else nullopt.
std::optional<bool> ParseTruth(std::string_view text);

// Returns the text that --help prints.
std::string HelpText(const ProgramHelp& help);

// Prints "<program>: <text>" to stderr as one line, whatever the text holds
// (Printable of base/text/printable.h).
void Say(std::string_view program, std::string_view text);

// Makes Say hand its lines, without their line break, to `sayer`. Called before
// there are threads.
void SetSayer(void (*sayer)(std::string_view line));

// Says the status's message, and what to do about a limit that the system set
// (ulimit); returns kExitFailed.
int ReportFailure(std::string_view program, const absl::Status& status);

// Says "<message>; see <program> --help"; returns kExitUsage.
int ReportUsage(std::string_view program, std::string_view message);

// Writes out what stdout still holds; called at the end of main with what that
// would return. If anything printed there was lost, says so on stderr and turns
// kExitOk into kExitFailed.
int FinishOutput(std::string_view program, int exit_code);

}  // namespace requant

#endif  // REQUANT_BASE_PROGRAM_FLAGS_H_
