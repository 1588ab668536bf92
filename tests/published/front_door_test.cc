// Tests ./requant, the front door, in a clone where it cannot build.

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "tests/support/program_runs.h"

namespace requant::front_door_test {
namespace {

namespace fs = std::filesystem;

// A clone without permission to write: root becomes another user, and others
// give up their own permission.
class ForeignCloneTest : public testing::Test {
 protected:
  ForeignCloneTest() {
    // The test's own folder may be in a home folder that others cannot enter.
    EXPECT_NE(mkdtemp(clone_.data()), nullptr);
    fs::create_directories(clone_ + "/third_party");
    for (const char* file :
         {"requant", "third_party/setup.sh", "third_party/versions.env"}) {
      fs::copy_file(file, absl::StrCat(clone_, "/", file));
      chmod(absl::StrCat(clone_, "/", file).c_str(), 0755);
    }
  }
  ~ForeignCloneTest() override {
    Protect(0755);
    fs::remove_all(clone_);
  }

  void Protect(mode_t mode) const {
    chmod(clone_.c_str(), mode);
    chmod(absl::StrCat(clone_, "/.requant").c_str(), mode);
  }

  // Calls ./requant with folders of this mode.
  ProgramRun Call(const std::string& command, mode_t mode = 0555) const {
    Protect(mode);
    const std::string script = clone_ + "/requant";
    if (geteuid() != 0) return RunProgram(script, {command});
    return RunProgram("/usr/bin/setpriv", {"--reuid=65534", "--regid=65534",
                                           "--clear-groups", script, command});
  }

  void ExpectOneSentence(const ProgramRun& run) const {
    EXPECT_THAT(run, Exits(1));
    EXPECT_EQ(std::count(run.error.begin(), run.error.end(), '\n'), 1);
    EXPECT_THAT(
        run.error,
        AllOf(StartsWith(absl::StrCat("requant: cannot build in ", clone_)),
              HasSubstr("belongs to"), HasSubstr("cp -r")));
  }

  std::string clone_ = "/tmp/requant_clone_XXXXXX";
};

TEST_F(ForeignCloneTest, IsRefusedBeforeAnyWork) {
  for (const char* command : {"run", "setup", "build", "wheel", "test"}) {
    ExpectOneSentence(Call(command));
  }
  EXPECT_FALSE(fs::exists(clone_ + "/.requant"));
}

TEST_F(ForeignCloneTest, IsRefusedAfterItsOwnerSetItUpButDidNotBuild) {
  fs::create_directory(clone_ + "/.requant");
  fs::copy_file(clone_ + "/third_party/versions.env",
                clone_ + "/.requant/setup");
  ExpectOneSentence(Call("run"));
}

TEST_F(ForeignCloneTest, WorksWhereItsOwnerBuiltIt) {
  fs::create_directory(clone_ + "/.requant");
  fs::copy_file(clone_ + "/third_party/versions.env",
                clone_ + "/.requant/setup");
  fs::create_directories(clone_ + "/bazel-bin/workflows");
  fs::copy_file("/bin/echo", clone_ + "/bazel-bin/workflows/requant");
  fs::copy_file(clone_ + "/requant", clone_ + "/.requant/built");
  EXPECT_THAT(Call("doctor"), Prints(testing::Eq("doctor\n")));
}

TEST_F(ForeignCloneTest, NamesWhatACallWithSudoLeft) {
  fs::create_directory(clone_ + "/.requant");
  const std::string lock = clone_ + "/.requant/lock";
  fs::copy_file(clone_ + "/requant", lock);
  chmod(lock.c_str(), 0444);
  if (geteuid() == 0) {
    for (const char* name : {"", "/.requant"}) {
      ASSERT_EQ(chown((clone_ + name).c_str(), 65534, 65534), 0);
    }
  }
  EXPECT_THAT(Call("run", 0755), Fails(lock, "sudo chown -R"));
}

}  // namespace
}  // namespace requant::front_door_test
