#ifndef REQUANT_BASE_TERMINAL_GUARD_H_
#define REQUANT_BASE_TERMINAL_GUARD_H_

// Filters all output to a program's stdout and stderr: no part of a name can
// control the terminal, whoever prints it, including TensorFlow's log and its
// Print op.

#include <cstdio>
#include <string_view>

namespace requant {

// Makes everything that this process prints through stdio, std::cout or
// std::cerr from now on printable (PrintableLines of base/text/printable.h).
// Thread-safe; further calls do nothing. What is written to a descriptor, such
// as a graph to /dev/stdout, is data and stays unchanged.
void GuardTerminal();

// Prints text with our own colors and cursor movements. The caller must have
// made all other parts of it printable.
void PrintStyled(std::FILE* stream, std::string_view text);

}  // namespace requant

#endif  // REQUANT_BASE_TERMINAL_GUARD_H_
