#ifndef REQUANT_TESTS_SUPPORT_CONTAINER_ENGINE_H_
#define REQUANT_TESTS_SUPPORT_CONTAINER_ENGINE_H_

// For tests that run real containers: an engine, a program that serves Bazel's
// cache to an image's build, and a folder that every user can read.

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "graph/testing/program.h"

namespace requant {

// A program that runs in the background until this object goes.
class BackgroundProgram {
 public:
  explicit BackgroundProgram(const std::vector<std::string>& argv);
  ~BackgroundProgram();
  BackgroundProgram(const BackgroundProgram&) = delete;
  BackgroundProgram& operator=(const BackgroundProgram&) = delete;

  // Waits for a line on its stdout that begins with "ready" and a blank, and
  // returns the rest of it; "" when the program ended without one.
  std::string WaitUntilReady();
  // Returns what it wrote to stderr so far.
  std::string Error();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::string ready_;
  std::string error_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// A Docker engine of the test's own (tests/support/engine).
class ContainerEngine {
 public:
  // Returns nullptr if it could not start; the error is then in `why_not`.
  static std::unique_ptr<ContainerEngine> Start(std::string* why_not);

  // Runs docker with these arguments to its end.
  ProgramRun Docker(const std::vector<std::string>& arguments) const;
  // Returns variables that a program needs to use this engine and its client.
  std::vector<std::string> Variables() const;
  // Returns the containers, running or not, one per line.
  std::string Containers() const;

 private:
  explicit ContainerEngine(std::unique_ptr<BackgroundProgram> program,
                           const std::string& host)
      : program_(std::move(program)), host_(host) {}

  std::unique_ptr<BackgroundProgram> program_;
  std::string host_;
};

// An empty folder that belongs to `user`, and that all others can read, unlike
// the test's own. Removed at the end.
class UserFolder {
 public:
  explicit UserFolder(int user);
  ~UserFolder();
  UserFolder(const UserFolder&) = delete;
  UserFolder& operator=(const UserFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string Path(const std::string& name) const { return path_ + "/" + name; }
  // Gives all that is in it to the user.
  void GiveToUser() const;

 private:
  const int user_;
  std::string path_;
};

}  // namespace requant

#endif  // REQUANT_TESTS_SUPPORT_CONTAINER_ENGINE_H_
