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
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace requant {
namespace {

constexpr int kPollMilliseconds = 200;

using Work = std::function<std::string(const std::function<void(int64_t)>&)>;

absl::Status NoProcess() {
  return absl::ResourceExhaustedError(absl::StrCat(
      "cannot start a process to check shapes in: ", std::strerror(errno)));
}

// The size of this process's address space.
int64_t AddressSpaceBytes() {
  int64_t pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * sysconf(_SC_PAGESIZE);
}

void LimitSelf(int64_t address_space) {
  rlimit core = {0, 0};
  setrlimit(RLIMIT_CORE, &core);
  rlimit memory;
  if (address_space > 0 && getrlimit(RLIMIT_AS, &memory) == 0 &&
      static_cast<rlim_t>(address_space) < memory.rlim_cur) {
    memory.rlim_cur = address_space;
    setrlimit(RLIMIT_AS, &memory);
  }
}

void WriteAll(int fd, const std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = write(fd, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno != EINTR) _exit(1);
    if (count > 0) done += count;
  }
}

[[noreturn]] void BeTheCopy(const Work& work, std::atomic<int64_t>* step,
                            int fd, pid_t parent, int64_t address_space) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    std::signal(signal, SIG_DFL);
  }
  const int null = open("/dev/null", O_WRONLY);
  if (null >= 0) dup2(null, STDERR_FILENO);
  LimitSelf(address_space);
  WriteAll(fd, work([step](int64_t value) { step->store(value); }));
  _exit(0);
}

double Now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

// Reads what the copy writes until it closes the pipe; false when its step
// stands still for too long.
bool ReadUntilClosed(int fd, const std::atomic<int64_t>& step,
                     double stalled_seconds, std::string* output) {
  int64_t seen = step.load();
  double since = Now();
  char buffer[1 << 16];
  while (true) {
    pollfd poller = {fd, POLLIN, 0};
    const int ready = poll(&poller, 1, kPollMilliseconds);
    if (ready > 0) {
      const ssize_t count = read(fd, buffer, sizeof(buffer));
      if (count == 0) return true;
      if (count > 0) output->append(buffer, count);
    }
    if (step.load() != seen) {
      seen = step.load();
      since = Now();
    } else if (Now() - since > stalled_seconds) {
      return false;
    }
  }
}

int WaitFor(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    // Someone else has collected it: its end is not known.
    if (errno != EINTR) return -1;
  }
  return status;
}

}  // namespace

absl::StatusOr<ForkedResult> RunForked(const Work& work,
                                       const ForkedLimits& limits) {
  void* shared =
      mmap(nullptr, sizeof(std::atomic<int64_t>), PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return NoProcess();
  absl::Cleanup unmap = [shared] {
    munmap(shared, sizeof(std::atomic<int64_t>));
  };
  auto* step = new (shared) std::atomic<int64_t>(-1);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return NoProcess();
  const int64_t space = AddressSpaceBytes();
  const pid_t parent = getpid();
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0) {
    const absl::Status status = NoProcess();
    close(ends[0]);
    close(ends[1]);
    return status;
  }
  if (pid == 0) {
    close(ends[0]);
    BeTheCopy(work, step, ends[1], parent,
              space > 0 ? space + limits.more_bytes : 0);
  }
  close(ends[1]);
  ForkedResult result;
  const bool ended =
      ReadUntilClosed(ends[0], *step, limits.stalled_seconds, &result.output);
  close(ends[0]);
  if (!ended) kill(pid, SIGKILL);
  const int status = WaitFor(pid);
  result.step = step->load();
  if (!ended) {
    result.failure = "did not end";
  } else if (status != 0) {
    result.failure = WIFSIGNALED(status) ? absl::StrCat("crashed (signal ",
                                                        WTERMSIG(status), ")")
                                         : "crashed";
  }
  if (!result.failure.empty()) result.output.clear();
  return result;
}

}  // namespace requant
