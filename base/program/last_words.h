#ifndef REQUANT_BASE_PROGRAM_LAST_WORDS_H_
#define REQUANT_BASE_PROGRAM_LAST_WORDS_H_

// What a process that runs TensorFlow writes to stderr: which lines mean
// nothing, and which one says why it died.

#include <string>
#include <string_view>

namespace requant {

// Lines that TensorFlow's libraries print whatever a program does, and what
// protobuf says of a file that turns out to be of another kind.
bool IsTensorFlowNoise(std::string_view line);

// Whether a process that writes this line is about to abort; then `reason` is
// what it says, without the time and place before it.
bool IsLastWord(std::string_view line, std::string* reason);

}  // namespace requant

#endif  // REQUANT_BASE_PROGRAM_LAST_WORDS_H_
