#ifndef REQUANT_BASE_TESTING_GOLDEN_CASES_H_
#define REQUANT_BASE_TESTING_GOLDEN_CASES_H_

// Runs test cases that are data: an input and the expected output.

#include <functional>
#include <map>
#include <string>

namespace requant {

// Checks every case of a file, which is among the test's data. A case is
//
//   === the rule that it is about
//   input
//   ---
//   output
//
// with any number of lines each. `output_of` gets the input and returns the
// output, both without a line break at the end. If the environment variable
// REQUANT_WRITE_CASES names a folder, the file is written there with the
// current outputs.
void CheckGoldenCases(
    const std::string& path,
    const std::function<std::string(const std::string& input)>& output_of);

// Removes lines such as "--set NAME=VALUE" from the start of an input and
// returns them. "T/" in a value is replaced by `folder`.
std::map<std::string, std::string> TakeSettings(const std::string& folder,
                                                std::string* input);

}  // namespace requant

#endif  // REQUANT_BASE_TESTING_GOLDEN_CASES_H_
