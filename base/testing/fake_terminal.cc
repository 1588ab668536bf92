#include "base/testing/fake_terminal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/terminal/terminal_text.h"

namespace requant {

ProgressEnvironment FakeTerminal::Environment() {
  ProgressEnvironment environment;
  environment.is_terminal = true;
  environment.now = [this] { return now; };
  environment.time_of_day = [] { return "12:34:56"; };
  environment.columns = [this] { return columns_; };
  environment.rows = [this] { return rows_; };
  environment.pauses = [this] { return pauses; };
  environment.write = [this](std::string_view text) {
    ++writes_;
    Write(text);
  };
  return environment;
}

void FakeTerminal::Write(std::string_view text) {
  absl::StrAppend(&raw_, text);
  while (!text.empty()) {
    size_t length = 1;
    if (text[0] == '\r') {
      column_ = 0;
    } else if (text[0] == '\n') {
      NewLine(false);
    } else if (text[0] == '\x1b') {
      length = Obey(text);
    } else {
      int width = 2;
      std::string_view character = CutToWidth(text, 1);
      if (character.empty()) {
        character = CutToWidth(text, 2);
      } else {
        width = DisplayWidth(character);
      }
      length = character.size();
      PutCharacter(character, width);
    }
    text.remove_prefix(length);
  }
}

void FakeTerminal::PutCharacter(std::string_view character, int width) {
  if (column_ + width > columns_) NewLine(true);
  std::vector<std::string>& cells = lines_[row_].cells;
  cells.resize(std::max<size_t>(cells.size(), column_ + width), " ");
  cells[column_] = std::string(character);
  for (int i = 1; i < width; ++i) cells[column_ + i].clear();
  column_ += width;
}

void FakeTerminal::NewLine(bool continues) {
  ++row_;
  column_ = 0;
  // An existing row keeps its relation to the one before it.
  if (row_ == static_cast<int>(lines_.size())) {
    lines_.push_back({{}, continues});
  }
}

int FakeTerminal::Top() const {
  return std::max(0, static_cast<int>(lines_.size()) - rows_);
}

size_t FakeTerminal::Obey(std::string_view sequence) {
  const size_t end = sequence.find_first_of("AKm");
  int number = 0;
  if (end == std::string_view::npos || sequence[1] != '[' ||
      (end > 2 && !absl::SimpleAtoi(sequence.substr(2, end - 2), &number))) {
    ADD_FAILURE() << "an escape sequence that no one expects: "
                  << sequence.substr(1, 8);
    return 1;
  }
  std::vector<std::string>& cells = lines_[row_].cells;
  const size_t left = std::min<size_t>(cells.size(), column_);
  switch (sequence[end]) {
    case 'A':
      row_ = std::max(Top(), row_ - number);
      break;
    case 'K':
      cells.resize(left);
      if (column_ == 0) lines_[row_].continues = false;
      break;
    default:
      break;
  }
  return end + 1;
}

void FakeTerminal::Resize(int columns, int rows) {
  std::vector<Row> old = std::move(lines_);
  // Empty rows below the cursor are not kept.
  old.resize(row_ + 1);
  lines_.clear();
  columns_ = columns;
  rows_ = rows;
  for (const Row& row : old) {
    if (!row.continues || lines_.empty()) {
      lines_.push_back({{}, false});
    }
    for (const std::string& cell : row.cells) {
      if (static_cast<int>(lines_.back().cells.size()) == columns) {
        lines_.push_back({{}, true});
      }
      lines_.back().cells.push_back(cell);
    }
  }
  row_ = static_cast<int>(lines_.size()) - 1;
}

std::string FakeTerminal::Text() const {
  std::string text;
  for (const Row& row : lines_) {
    std::string line;
    for (const std::string& cell : row.cells) absl::StrAppend(&line, cell);
    absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(line), "\n");
  }
  return absl::StrCat(absl::StripTrailingAsciiWhitespace(text), "\n");
}

}  // namespace requant
