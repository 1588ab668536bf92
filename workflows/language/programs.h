#ifndef REQUANT_WORKFLOWS_LANGUAGE_PROGRAMS_H_
#define REQUANT_WORKFLOWS_LANGUAGE_PROGRAMS_H_

// The programs behind requant's commands.

#include <string_view>
#include <vector>

namespace requant {

struct Program {
  // The command's name, such as "transform", and what it is for.
  const char* command;
  const char* summary;
  // The package folder and the name of the program.
  const char* folder;
  const char* name;
  // It runs graphs: it uses every core, and much of the memory, by itself.
  bool runs_graphs = false;
  // What it prints tells about what it made; the others print results that are
  // in files too.
  bool prints_notes = false;
  // A second exit code that is no failure: graphs differ.
  int other_success = 0;
};

// All of them, by command.
const std::vector<Program>& Programs();

// The program of a command; null if the command has none.
const Program* FindProgram(std::string_view command);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_LANGUAGE_PROGRAMS_H_
