#include "base/terminal_guard.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <ext/stdio_sync_filebuf.h>
#include <iostream>
#include <string>

#include "base/text/printable.h"

namespace requant {
namespace {

// The destination of stdout or stderr. The stream's lock protects it.
struct Guard {
  int fd;
  // The first bytes of a character that the next write completes.
  std::string pending;
  bool styled = false;
};

Guard& GuardOf(std::FILE* stream) {
  static Guard* const out = new Guard{STDOUT_FILENO, ""};
  static Guard* const error = new Guard{STDERR_FILENO, ""};
  return stream == stdout ? *out : *error;
}

// Returns how many bytes at the end are an incomplete UTF-8 character.
size_t UnfinishedBytes(std::string_view text) {
  for (size_t n = 1; n <= std::min<size_t>(3, text.size()); ++n) {
    const unsigned char byte = text[text.size() - n];
    if ((byte & 0xc0) == 0x80) continue;
    const size_t needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return byte >= 0xc2 && n < needed ? n : 0;
  }
  return 0;
}

ssize_t WriteGuarded(void* cookie, const char* data, size_t size) {
  Guard& guard = *static_cast<Guard*>(cookie);
  std::string text;
  if (guard.styled) {
    text = PrintableLines(guard.pending).append(data, size);
    guard.pending.clear();
  } else {
    guard.pending.append(data, size);
    const size_t whole = guard.pending.size() - UnfinishedBytes(guard.pending);
    text = PrintableLines(std::string_view(guard.pending).substr(0, whole));
    guard.pending.erase(0, whole);
  }
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t n = write(guard.fd, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    // stdio treats this as an error; errno has the cause.
    if (n <= 0) return 0;
    rest.remove_prefix(n);
  }
  return size;
}

std::FILE* Guarded(std::FILE* stream, int buffering) {
  std::fflush(stream);
  cookie_io_functions_t functions = {};
  functions.write = WriteGuarded;
  std::FILE* const guarded = fopencookie(&GuardOf(stream), "w", functions);
  if (guarded == nullptr) return stream;
  std::setvbuf(guarded, nullptr, buffering, BUFSIZ);
  return guarded;
}

}  // namespace

void GuardTerminal() {
  [[maybe_unused]] static const bool once = [] {
    stdout = Guarded(stdout, isatty(STDOUT_FILENO) != 0 ? _IOLBF : _IOFBF);
    stderr = Guarded(stderr, _IONBF);
    using StreamBuffer = __gnu_cxx::stdio_sync_filebuf<char>;
    std::cout.rdbuf(new StreamBuffer(stdout));
    std::cerr.rdbuf(new StreamBuffer(stderr));
    return true;
  }();
}

void PrintStyled(std::FILE* stream, std::string_view text) {
  flockfile(stream);
  std::fflush(stream);
  GuardOf(stream).styled = true;
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
  GuardOf(stream).styled = false;
  funlockfile(stream);
}

}  // namespace requant
