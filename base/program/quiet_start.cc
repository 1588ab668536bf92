// TensorFlow's libraries print notices while they are loaded, before main, and
// every setting that silences them also turns oneDNN off. Linked into a
// program, this file redirects stderr during that time. The dynamic loader's
// own complaints, such as a missing library, come earlier and stay visible.
//
// It also fills descriptors 0 to 2 if the caller closed them, so that output
// never goes to one of the program's own files, and ignores SIGXFSZ, so that
// exceeding the file size limit (ulimit -f) is a write error that can be
// reported. Children inherit that.

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

namespace {

int saved_stderr = -1;

// Replaces a closed descriptor by one that is useless for its purpose, so that
// users get an error and not another file's bytes.
void FillClosedDescriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

// Runs before the constructors of every shared library and must not use
// anything that they set up.
void HideStderr(int, char**, char**) {
  FillClosedDescriptors();
  signal(SIGXFSZ, SIG_IGN);
  // Avoids descriptors that a parent may have opened for this process.
  constexpr int kAboveReservedDescriptors = 4;
  const int saved =
      fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, kAboveReservedDescriptors);
  if (saved < 0) return;
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere >= 0 && dup2(nowhere, STDERR_FILENO) >= 0) {
    saved_stderr = saved;
  } else {
    close(saved);
  }
  if (nowhere >= 0) close(nowhere);
}

[[gnu::used,
  gnu::section(".preinit_array")]] void (*hide_stderr)(int, char**,
                                                       char**) = HideStderr;

// The program's own constructors run after those of its libraries, in order of
// increasing priority number.
[[gnu::constructor(101)]] void ShowStderr() {
  if (saved_stderr < 0) return;
  dup2(saved_stderr, STDERR_FILENO);
  close(saved_stderr);
  saved_stderr = -1;
}

}  // namespace
