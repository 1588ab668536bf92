#ifndef REQUANT_TESTS_SUPPORT_PASTED_H_
#define REQUANT_TESTS_SUPPORT_PASTED_H_

// Support for tests that paste the published documents' commands (tests/pasted)
// into a session: the commands, the files they need, and the results they must
// have.

#include <string>

#include "graph/testing/program.h"

namespace requant {

inline constexpr char kGptjCommands[] = "tests/pasted/gptj.sh";
inline constexpr char kRecipeCommands[] = "tests/pasted/wide_deep.sh";

// Returns the commands with the substitutions for `where`, which is "container"
// or "outside"; @FOLDER@ in them becomes `folder`.
std::string PastedCommands(const std::string& document,
                           const std::string& where,
                           const std::string& folder = "");

// Puts the recipe's initial files into `folder`: a graph, a SavedModel and
// records.
void MakeRecipeFiles(const std::string& folder);
// Expects the recipe's log tails, and int8 graphs within its limits. `folder`
// is that of MakeRecipeFiles.
void ExpectRecipeDone(const ProgramRun& run, const std::string& folder);

// Puts the tiny GPT-J where the document expects the big one.
void MakeGptjFiles(const std::string& folder);
// Expects the document's printed lines and files.
void ExpectGptjDone(const ProgramRun& run, const std::string& folder);

}  // namespace requant

#endif  // REQUANT_TESTS_SUPPORT_PASTED_H_
