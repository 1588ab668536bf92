#include "tests/support/container_engine.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>

#include "absl/strings/strip.h"
#include "base/process/subprocess.h"

namespace requant {
namespace {

namespace fs = std::filesystem;

// Debian's client comes before others: it has BuildKit without a plugin.
constexpr char kPath[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";

}  // namespace

BackgroundProgram::BackgroundProgram(const std::vector<std::string>& argv) {
  thread_ = std::thread([this, argv] {
    ChildOptions options;
    options.argv = argv;
    options.stop = &stop_;
    options.on_stdout = [this](std::string_view line) {
      if (!absl::ConsumePrefix(&line, "ready ")) return;
      const std::lock_guard<std::mutex> lock(mutex_);
      ready_ = std::string(line);
      changed_.notify_all();
    };
    options.on_stderr = [this](std::string_view line) {
      const std::lock_guard<std::mutex> lock(mutex_);
      absl::StrAppend(&error_, line, "\n");
    };
    const auto result = RunChild(options);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!result.ok()) absl::StrAppend(&error_, result.status().message());
    ended_ = true;
    changed_.notify_all();
  });
}

BackgroundProgram::~BackgroundProgram() {
  stop_ = true;
  thread_.join();
}

std::string BackgroundProgram::WaitUntilReady() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return ended_ || !ready_.empty(); });
  return ready_;
}

std::string BackgroundProgram::Error() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return error_;
}

std::unique_ptr<ContainerEngine> ContainerEngine::Start(std::string* why_not) {
  auto program = std::make_unique<BackgroundProgram>(
      std::vector<std::string>{"tests/support/engine"});
  const std::string host = program->WaitUntilReady();
  *why_not = program->Error();
  if (host.empty()) return nullptr;
  return std::unique_ptr<ContainerEngine>(
      new ContainerEngine(std::move(program), host));
}

ProgramRun ContainerEngine::Docker(
    const std::vector<std::string>& arguments) const {
  return RunProgram("docker", arguments, Variables());
}

std::vector<std::string> ContainerEngine::Variables() const {
  return {kPath, absl::StrCat("DOCKER_HOST=", host_)};
}

std::string ContainerEngine::Containers() const {
  return Docker({"ps", "--all", "--format", "{{.Names}} {{.Status}}"}).out;
}

UserFolder::UserFolder(int user) : user_(user) {
  path_ = "/tmp/requant-container.XXXXXX";
  if (mkdtemp(path_.data()) == nullptr || chmod(path_.c_str(), 0755) != 0) {
    ADD_FAILURE() << "no folder " << path_;
  }
  GiveToUser();
}

UserFolder::~UserFolder() { fs::remove_all(path_); }

void UserFolder::GiveToUser() const {
  EXPECT_EQ(lchown(path_.c_str(), user_, user_), 0) << path_;
  for (const auto& entry : fs::recursive_directory_iterator(path_)) {
    EXPECT_EQ(lchown(entry.path().c_str(), user_, user_), 0) << entry.path();
  }
}

}  // namespace requant
