#include "base/process/forked_work.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/seconds_since.h"

namespace requant {
namespace {

constexpr int kPollMilliseconds = 200;

using Work = std::function<std::string(const std::function<void(int64_t)>&)>;

absl::Status NoProcess(int error) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "cannot start a process to check shapes in: ", std::strerror(error)));
}

// Returns the size of this process's address space.
int64_t AddressSpaceBytes() {
  int64_t pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * sysconf(_SC_PAGESIZE);
}

void LimitSelf(int64_t address_space) {
  // The limit alone does not keep a core handler from dumping a crash.
  prctl(PR_SET_DUMPABLE, 0);
  rlimit core = {0, 0};
  setrlimit(RLIMIT_CORE, &core);
  rlimit memory;
  if (address_space > 0 && getrlimit(RLIMIT_AS, &memory) == 0 &&
      static_cast<rlim_t>(address_space) < memory.rlim_cur) {
    memory.rlim_cur = address_space;
    setrlimit(RLIMIT_AS, &memory);
  }
}

// What the copy reports besides its output. An exit status would be lost where
// SIGCHLD is ignored or another thread waits for any child.
struct SharedState {
  std::atomic<int64_t> step{-1};
  std::atomic<bool> done{false};
};

[[noreturn]] void BeTheCopy(const Work& work, SharedState* state, int fd,
                            pid_t parent, int64_t address_space) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  // Handlers of this program (from a library or sanitizer) would print a stack
  // trace.
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action;
    if (sigaction(signal, nullptr, &action) == 0 &&
        action.sa_handler != SIG_IGN) {
      std::signal(signal, SIG_DFL);
    }
  }
  const int null = open("/dev/null", O_WRONLY);
  if (null >= 0) dup2(null, STDERR_FILENO);
  LimitSelf(address_space);
  const std::string output =
      work([state](int64_t value) { state->step = value; });
  state->done = WriteAll(fd, output).ok();
  _exit(0);
}

// Reads what the copy writes until it closes the pipe. Returns false when the
// step has not changed for too long.
bool ReadUntilClosed(int fd, const std::atomic<int64_t>& step,
                     double stalled_seconds, std::string* output) {
  int64_t seen = step;
  auto since = std::chrono::steady_clock::now();
  char buffer[1 << 16];
  while (true) {
    pollfd poller = {fd, POLLIN, 0};
    const int ready = poll(&poller, 1, kPollMilliseconds);
    if (ready > 0) {
      const ssize_t count = read(fd, buffer, sizeof(buffer));
      if (count == 0) return true;
      if (count > 0) output->append(buffer, count);
    }
    if (step != seen) {
      seen = step;
      since = std::chrono::steady_clock::now();
    } else if (SecondsSince(since) > stalled_seconds) {
      return false;
    }
  }
}

}  // namespace

absl::StatusOr<ForkedResult> RunForked(const Work& work,
                                       const ForkedLimits& limits) {
  void* shared = mmap(nullptr, sizeof(SharedState), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return NoProcess(errno);
  absl::Cleanup unmap = [shared] { munmap(shared, sizeof(SharedState)); };
  auto* state = new (shared) SharedState;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return NoProcess(errno);
  absl::Cleanup close_read_end = [&] { close(ends[0]); };
  const int64_t space = AddressSpaceBytes();
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    BeTheCopy(work, state, ends[1], parent,
              space > 0 ? space + limits.more_bytes : 0);
  }
  const int error = errno;
  close(ends[1]);
  if (pid < 0) return NoProcess(error);
  ForkedResult result;
  const bool ended = ReadUntilClosed(ends[0], state->step,
                                     limits.stalled_seconds, &result.output);
  if (!ended) kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  result.step = state->step;
  if (ended && state->done) return result;
  result.output.clear();
  if (!ended) {
    result.failure = "did not end";
  } else if (WIFSIGNALED(status)) {
    result.failure = absl::StrCat("crashed (signal ", WTERMSIG(status), ")");
  } else {
    result.failure = "crashed";
  }
  return result;
}

}  // namespace requant
