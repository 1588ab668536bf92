#ifndef REQUANT_TESTS_SUPPORT_PAGES_H_
#define REQUANT_TESTS_SUPPORT_PAGES_H_

// Support for tests of documentation as it is written.

#include <string>
#include <string_view>
#include <vector>

#include "tests/support/program_runs.h"

namespace requant {

// Returns the blocks of a page that are marked with this language.
std::vector<std::string> Blocks(const std::string& page,
                                std::string_view language);

// Writes the page's blocks of this language into the folder as the files that
// their first lines name: "# NAME".
void WriteBlocks(const std::string& page, std::string_view language,
                 const TestFolder& folder);

// Makes a folder look like the top of the repository after ./requant build.
// Set-up and build are not repeated, since CI itself does them.
void MakeLikeRepository(const TestFolder& folder);

}  // namespace requant

#endif  // REQUANT_TESTS_SUPPORT_PAGES_H_
