#ifndef REQUANT_TESTS_SUPPORT_PROGRAM_RUNS_H_
#define REQUANT_TESTS_SUPPORT_PROGRAM_RUNS_H_

// Support for end-to-end tests: runs programs and matches the results. A text
// in place of a matcher stands for HasSubstr of it.

#include <sys/types.h>

#include <string>
#include <type_traits>
#include <vector>

#include "graph/testing/program.h"

namespace requant {

// A command line or a part of one.
using Words = std::vector<std::string>;

// Returns the words of both arguments.
inline Words Joined(Words first, const Words& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// Runs a program that must succeed.
ProgramRun MustRun(const std::string& program, const Words& arguments);

// Runs a program in `folder`, so that paths in `arguments` are relative to it.
ProgramRun RunIn(const TestFolder& folder, const std::string& program,
                 const Words& arguments, const Words& variables = {});

// Replaces the process, a child after a fork, with the program of `line`.
[[noreturn]] void Exec(Words line);

// Starts a program as RunProgram does, in a process group of its own, and
// returns at once. Its output is discarded.
pid_t StartProgram(const std::string& program, const Words& arguments);

// Returns whether the process is running. One that ended but was not waited for
// is not.
bool IsAlive(pid_t pid);
// Waits until the process is no longer running; only the test's own time limit
// bounds the wait.
void WaitUntilGone(pid_t pid);

// Waits for a child of the test to end by itself and returns its exit code, or
// -1 if a signal ended it.
int WaitForExitCode(pid_t pid);

// Returns the number that the group of `pattern` matches in `text`. Fails the
// test if there is none.
double NumberIn(const std::string& text, const std::string& pattern);

// The text that evaluations print, misspelt as in the published recipe.
inline constexpr char kCorrectPredictions[] =
    "No of correct predicitons    :  (\\d+)\n";

// Returns the declaration of "data.csv" with one column "x" of `width` floats,
// which feeds `placeholder`, and a column "label" if `label`.
std::string CsvDeclaration(int width, bool label = true,
                           const std::string& placeholder = "x");

// A separate disk, which only root may mount. `size` is an option of mount.
class SmallDisk {
 public:
  SmallDisk(const std::string& path, const std::string& size);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  bool mounted_;
};

// Matches what all of the matchers match.
template <typename... T>
testing::Matcher<std::string> Having(const T&... texts) {
  const auto matcher = [](const auto& text) -> testing::Matcher<std::string> {
    if constexpr (std::is_convertible_v<decltype(text), std::string>) {
      return HasSubstr(std::string(text));
    } else {
      return text;
    }
  };
  return testing::AllOfArray({matcher(texts)...});
}

MATCHER_P(PrintsMatching, out,
          absl::StrCat("succeeds and prints what ",
                       testing::DescribeMatcher<std::string>(out, negation))) {
  *result_listener << "which exits with " << arg.exit_code << " and prints\n"
                   << arg.out << "\nand says\n"
                   << arg.error;
  return arg.exit_code == 0 && testing::Value(arg.out, out);
}

// Matches a run that succeeds and whose stdout matches.
template <typename... T>
auto Prints(const T&... out) {
  return PrintsMatching(Having(out...));
}

// Match a run that ends with code 0, 1 or 2 and whose stderr matches.
template <typename... T>
auto Warns(const T&... error) {
  return Exits(0, Having(error...));
}
template <typename... T>
auto Fails(const T&... error) {
  return Exits(1, Having(error...));
}
template <typename... T>
auto Misused(const T&... error) {
  return Exits(2, Having(error...));
}

// Match a run that ends with code 1, or 2 for wrong usage, prints nothing, and
// says why in one line: the program's name and a sentence that matches.
template <typename... T>
testing::Matcher<const ProgramRun&> Refuses(const T&... sentence) {
  return AllOf(Fails(MatchesRegex("[a-z_]+: [^\n]*\n"), sentence...),
               testing::Field("out", &ProgramRun::out, ""));
}
template <typename... T>
testing::Matcher<const ProgramRun&> RefusesUsage(const T&... sentence) {
  return AllOf(Misused(MatchesRegex("[a-z_]+: [^\n]*\n"), sentence...),
               testing::Field("out", &ProgramRun::out, ""));
}

}  // namespace requant

#endif  // REQUANT_TESTS_SUPPORT_PROGRAM_RUNS_H_
