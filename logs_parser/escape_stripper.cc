#include "logs_parser/escape_stripper.h"

#include <cstddef>
#include <cstring>

namespace requant {
namespace {

constexpr unsigned char kEscapeByte = 0x1b;
constexpr unsigned char kBell = 0x07;

bool Between(unsigned char byte, unsigned char low, unsigned char high) {
  return low <= byte && byte <= high;
}

}  // namespace

EscapeStripper::State EscapeStripper::Next(State state, unsigned char byte,
                                           bool* keep) {
  *keep = false;
  if (byte == '\n' || state == State::kText) {
    *keep = byte == '\n' || byte != kEscapeByte;
    return *keep ? State::kText : State::kEscape;
  }
  if (byte == kEscapeByte) {
    return state == State::kString || state == State::kStringEscape
               ? State::kStringEscape
               : State::kEscape;
  }
  switch (state) {
    case State::kEscape:
      if (byte == '[') return State::kControl;
      if (std::strchr("]PX^_", byte) != nullptr && byte != 0) {
        return State::kString;
      }
      [[fallthrough]];
    case State::kIntermediate:
      if (Between(byte, 0x20, 0x2f)) return State::kIntermediate;
      *keep = !Between(byte, 0x30, 0x7e);
      return State::kText;
    case State::kControl:
      if (Between(byte, 0x20, 0x3f)) return State::kControl;
      *keep = !Between(byte, 0x40, 0x7e);
      return State::kText;
    case State::kString:
      return byte == kBell ? State::kText : State::kString;
    case State::kStringEscape:
      return byte == '\\' ? State::kText : State::kString;
    case State::kText:
      break;
  }
  return State::kText;
}

size_t EscapeStripper::Strip(char* data, size_t size) {
  size_t in = 0, out = 0;
  while (in < size) {
    if (state_ == State::kText) {
      const void* escape = std::memchr(data + in, kEscapeByte, size - in);
      const size_t text = escape == nullptr
                              ? size - in
                              : static_cast<const char*>(escape) - (data + in);
      if (out != in) std::memmove(data + out, data + in, text);
      in += text;
      out += text;
      if (in == size) break;
    }
    bool keep = false;
    state_ = Next(state_, static_cast<unsigned char>(data[in]), &keep);
    if (keep) data[out++] = data[in];
    ++in;
  }
  return out;
}

}  // namespace requant
