#ifndef REQUANT_BASE_TESTING_FAKE_TERMINAL_H_
#define REQUANT_BASE_TESTING_FAKE_TERMINAL_H_

// A terminal for tests that shows what a person would see: it supports line
// ends, wrapping, cursor up, erasing and colors, and refuses all else.

#include <string>
#include <string_view>
#include <vector>

#include "base/terminal/progress.h"

namespace requant {

class FakeTerminal {
 public:
  FakeTerminal(int columns, int rows) : columns_(columns), rows_(rows) {}

  // Returns an environment that writes here and takes its time from `now`.
  ProgressEnvironment Environment();

  void Write(std::string_view text);
  // Wraps rows that no longer fit, as most terminals do. The cursor must be at
  // the start of the last line.
  void Resize(int columns, int rows);

  // Returns everything, including rows that scrolled away, a line per row,
  // without colors. Trailing spaces and empty rows are left out.
  std::string Text() const;
  // Returns the number of writes, and their concatenated bytes.
  int writes() const { return writes_; }
  const std::string& raw() const { return raw_; }

  double now = 100;
  int pauses = 0;

 private:
  struct Row {
    // One string per column, empty after a two-column character.
    std::vector<std::string> cells;
    // Whether the row continues the previous one, which was full.
    bool continues = false;
  };

  void PutCharacter(std::string_view character, int width);
  // Executes an escape sequence and returns its length.
  size_t Obey(std::string_view sequence);
  void NewLine(bool continues);
  int Top() const;

  int columns_;
  int rows_;
  std::vector<Row> lines_ = {{}};
  int row_ = 0;
  int column_ = 0;
  int writes_ = 0;
  std::string raw_;
};

}  // namespace requant

#endif  // REQUANT_BASE_TESTING_FAKE_TERMINAL_H_
