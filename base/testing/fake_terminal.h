#ifndef REQUANT_BASE_TESTING_FAKE_TERMINAL_H_
#define REQUANT_BASE_TESTING_FAKE_TERMINAL_H_

// A terminal for tests, which shows what a person would see: it knows line
// ends, wrapping, cursor up, erasing and colours, and refuses all else.

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
  // Wraps what does not fit again, as most terminals do. The cursor must be on
  // the last line, at its beginning.
  void Resize(int columns, int rows);

  // Returns everything, including what scrolled away, a line per row, without
  // colours. Blanks and empty rows at the end are left out.
  std::string Text() const;
  // Returns the number of writes, and all of their bytes.
  int writes() const { return writes_; }
  const std::string& raw() const { return raw_; }

  double now = 100;
  int pauses = 0;

 private:
  struct Row {
    // One string per column; empty after a character of two columns.
    std::vector<std::string> cells;
    // The row continues the one before it, which was full.
    bool continues = false;
  };

  void PutCharacter(std::string_view character, int width);
  // Obeys an escape sequence and returns its length.
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
