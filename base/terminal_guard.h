#ifndef REQUANT_BASE_TERMINAL_GUARD_H_
#define REQUANT_BASE_TERMINAL_GUARD_H_

// The one place through which a program's stdout and stderr pass: whatever
// prints, TensorFlow's log and its Print op too, no byte of a name reaches a
// terminal that the terminal would obey.

#include <cstdio>
#include <string_view>

namespace requant {

// From now on what this process prints through stdio, std::cout or std::cerr is
// made printable by PrintableLines (base/text/printable.h). Thread-safe;
// further calls do nothing. What is written to a descriptor, such as a graph to
// /dev/stdout, is data and stays as it is.
void GuardTerminal();

// Prints text with colours and cursor movements of our own. All that comes from
// elsewhere has been made printable in it.
void PrintStyled(std::FILE* stream, std::string_view text);

}  // namespace requant

#endif  // REQUANT_BASE_TERMINAL_GUARD_H_
