#ifndef REQUANT_LOGS_PARSER_ESCAPE_STRIPPER_H_
#define REQUANT_LOGS_PARSER_ESCAPE_STRIPPER_H_

#include <cstddef>

namespace requant {

// Removes the escape sequences of terminals (ECMA-48: colours, cursor moves,
// titles, links) from a stream of bytes that comes in pieces. A sequence may be
// spread over pieces. It never reaches beyond a line break, so that a broken
// one costs at most the rest of its line.
class EscapeStripper {
 public:
  // Compacts `data` in place; returns its new size.
  size_t Strip(char* data, size_t size);

 private:
  enum class State {
    kText,
    kEscape,        // After ESC.
    kIntermediate,  // After ESC and one of " !\"#$%&'()*+,-./".
    kControl,       // After ESC [.
    kString,        // After ESC ] P X ^ or _: up to BEL or ESC \.
    kStringEscape,  // In a string, after ESC.
  };

  // The state after `byte`; `*keep` says whether the byte is text.
  static State Next(State state, unsigned char byte, bool* keep);

  State state_ = State::kText;
};

}  // namespace requant

#endif  // REQUANT_LOGS_PARSER_ESCAPE_STRIPPER_H_
