// Runs every command that README.md, and pages which no other test runs, show
// in an "sh" block.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files/file.h"
#include "base/process/subprocess.h"

namespace requant::readme_test {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

std::string Runfile(const std::string& path) {
  return absl::StrCat(std::getenv("TEST_SRCDIR"), "/requant/", path);
}

// Makes a folder like the top of the repository after ./requant build. The
// front door's first part, set-up and build, is what CI itself goes through.
std::string MakeWorkFolder() {
  const std::string folder = testing::TempDir() + "readme";
  EXPECT_EQ(std::system(("rm -rf " + folder + " && mkdir " + folder).c_str()),
            0);
  for (const std::string room : {"tests", "workflows"}) {
    EXPECT_EQ(symlink(Runfile(room).c_str(), (folder + "/" + room).c_str()), 0);
  }
  EXPECT_EQ(symlink(Runfile("").c_str(), (folder + "/bazel-bin").c_str()), 0);
  EXPECT_EQ(symlink(Runfile("workflows/requant").c_str(),
                    (folder + "/requant").c_str()),
            0);
  return folder;
}

std::vector<std::string> CommandsOf(const std::string& page) {
  std::vector<std::string> commands;
  bool in_block = false;
  const std::string text = ReadFile(Runfile(page)).value();
  for (std::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StartsWith(line, "```")) {
      in_block = line == "```sh";
    } else if (in_block && !line.empty()) {
      commands.emplace_back(line);
    }
  }
  return commands;
}

void ExpectEveryCommandWorks(const std::vector<std::string>& commands) {
  EXPECT_THAT(commands, SizeIs(testing::Ge(8)));
  const std::string folder = MakeWorkFolder();
  for (const std::string& command : commands) {
    // Inside a Bazel test Bazel cannot run; what it would build is there.
    if (absl::StartsWith(command, "bazel build ")) continue;
    std::string output;
    ChildOptions child;
    child.argv = {"/bin/sh", "-c",
                  absl::StrCat("cd '", folder, "' && ", command)};
    child.on_stdout = [&](std::string_view line) {
      absl::StrAppend(&output, line, "\n");
    };
    child.on_stderr = child.on_stdout;
    const auto result = RunChild(child);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->exit_code, 0) << command << "\n" << output;
    EXPECT_FALSE(output.empty()) << command;
  }
}

TEST(Readme, EveryCommandWorks) {
  ExpectEveryCommandWorks(CommandsOf("README.md"));
}

TEST(SavedModelsPage, EveryCommandWorks) {
  ExpectEveryCommandWorks(CommandsOf("docs/saved_models.md"));
}

TEST(Readme, ShowsTheTwoCommands) {
  const std::string readme = ReadFile(Runfile("README.md")).value();
  EXPECT_THAT(readme, HasSubstr("./requant run"));
  EXPECT_THAT(readme, HasSubstr("./requant test"));
}

}  // namespace
}  // namespace requant::readme_test
