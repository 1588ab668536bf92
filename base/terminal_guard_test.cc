#include "base/terminal_guard.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <iostream>
#include <string>

namespace requant::terminal_guard_test {
namespace {

// Returns what a guarded process prints while it does `work`.
std::string Printed(std::FILE*& stream, const std::function<void()>& work) {
  GuardTerminal();
  stream == stdout ? testing::internal::CaptureStdout()
                   : testing::internal::CaptureStderr();
  work();
  return stream == stdout ? testing::internal::GetCapturedStdout()
                          : testing::internal::GetCapturedStderr();
}

TEST(TerminalGuard, EscapesWhoeverPrints) {
  EXPECT_EQ(Printed(stdout,
                    [] {
                      std::printf("a\x1b[2J%s\n", "\u009b\xff");
                      std::cout << "b\r\n";
                    }),
            "a\\x1b[2J\\xc2\\x9b\\xff\nb\\x0d\n");
  EXPECT_EQ(Printed(stderr,
                    [] {
                      std::fputs("a\x1b[2J\n", stderr);
                      std::cerr << "b\x1b\n";
                    }),
            "a\\x1b[2J\nb\\x1b\n");
}

TEST(TerminalGuard, KeepsCharactersThatAreWrittenInPieces) {
  EXPECT_EQ(Printed(stderr,
                    [] {
                      for (const char byte : std::string("\u00e4\u5c42\n")) {
                        std::fputc(byte, stderr);
                      }
                      // An incomplete character precedes a complete one.
                      std::fputs("\xe5\xb1", stderr);
                      std::fputs("\u00e4\n", stderr);
                    }),
            "\u00e4\u5c42\n\\xe5\\xb1\u00e4\n");
  // The text is longer than any buffer, so that characters straddle its end.
  std::string text;
  for (int i = 0; i < 100000; ++i) text += i % 7 == 0 ? "a" : "\u5c42";
  EXPECT_EQ(Printed(stdout, [&] { std::printf("%s\n", text.c_str()); }),
            text + "\n");
}

TEST(TerminalGuard, LetsOurOwnStylesPass) {
  EXPECT_EQ(Printed(stdout,
                    [] {
                      std::fputs("\x1b[1m", stdout);
                      PrintStyled(stdout, "\x1b[32mok\x1b[0m\n");
                      std::fputs("\x1b[1m\n", stdout);
                    }),
            "\\x1b[1m\x1b[32mok\x1b[0m\n\\x1b[1m\n");
}

TEST(TerminalGuard, ReportsLostOutput) {
  GuardTerminal();
  std::fflush(stdout);
  const int kept = dup(STDOUT_FILENO);
  const int full = open("/dev/full", O_WRONLY);
  dup2(full, STDOUT_FILENO);
  std::printf("lost\n");
  errno = 0;
  EXPECT_NE(std::fflush(stdout), 0);
  EXPECT_EQ(errno, ENOSPC);
  dup2(kept, STDOUT_FILENO);
  close(kept);
  close(full);
  std::clearerr(stdout);
}

}  // namespace
}  // namespace requant::terminal_guard_test
