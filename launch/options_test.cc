#include "launch/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace requant::launch::options_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Options Parsed(const std::vector<std::string>& arguments) {
  const Result<Options> options = ParseOptions(arguments);
  EXPECT_TRUE(options.ok()) << options.failure().message;
  return options.ok() ? *options : Options();
}

// Returns the options for a model directory and the arguments `more`.
Options WithModel(std::vector<std::string> more) {
  more.insert(more.begin(), "--pre-trained-model-dir=/model");
  return Parsed(more);
}

std::string Refusal(const std::vector<std::string>& arguments) {
  const Result<Options> options = ParseOptions(arguments);
  return options.ok() ? "" : options.failure().message;
}

TEST(ParseOptions, TakesEverySpellingOfAFlag) {
  for (const std::vector<std::string>& spelling :
       std::vector<std::vector<std::string>>{
           {"--docker-image=a:1", "--pre-trained-model-dir=/m"},
           {"--docker_image", "a:1", "--pre_trained_model_dir", "/m"},
           {"--docker_image=a:1", "--pre-trained_model-dir=/m"},
           {"-i", "a:1", "-p", "/m"},
           {"-ia:1", "-p/m"},
           {"-i=a:1", "-p=/m"},
           {"--docker", "a:1", "--pre", "/m"}}) {
    const Options options = Parsed(spelling);
    EXPECT_EQ(options.image, "a:1") << spelling[0];
    EXPECT_EQ(options.model_dir, "/m") << spelling[0];
  }
  EXPECT_EQ(WithModel({}).image, "quantization:latest");
}

TEST(ParseOptions, TakesSeveralLettersInOne) {
  const Options options = Parsed({"-vtp", "/m"});
  EXPECT_TRUE(options.verbose);
  EXPECT_TRUE(options.test);
  EXPECT_EQ(options.model_dir, "/m");
}

TEST(ParseOptions, LeavesTheCommandAlone) {
  EXPECT_THAT(
      WithModel({"--", "requant", "run", "--out=x", "-v", "--", ""}).command,
      ElementsAre("requant", "run", "--out=x", "-v", "--", ""));
  EXPECT_FALSE(WithModel({"--", "requant", "-v"}).verbose);
}

TEST(ParseOptions, CollectsVolumes) {
  const Options options =
      WithModel({"--volume=/a:/x,/b:/y:ro", "--volume", "/c\\,d\\e:/z"});
  ASSERT_EQ(options.volumes.size(), 3);
  EXPECT_EQ(options.volumes[0].source, "/a");
  EXPECT_TRUE(options.volumes[1].read_only);
  EXPECT_EQ(options.volumes[2].source, "/c,d\\e");
}

TEST(ParseOptions, CollectsVariablesAndTheLastOfANameCounts) {
  setenv("LAUNCH_TEST_SET", "1", 1);
  unsetenv("LAUNCH_TEST_UNSET");
  EXPECT_THAT(WithModel({"--env", "A=1,B=x\\,y", "--env=A=2",
                         "--env=LAUNCH_TEST_SET", "--env=C="})
                  .environment,
              ElementsAre("B=x,y", "A=2", "LAUNCH_TEST_SET", "C="));
  EXPECT_THAT(Refusal({"-p/m", "--env=LAUNCH_TEST_UNSET"}),
              HasSubstr("is not set here"));
  EXPECT_THAT(Refusal({"-p/m", "--env=LIST=a,b"}),
              HasSubstr("\\, for a comma in a value"));
  EXPECT_THAT(Refusal({"-p/m", "--env==x"}), HasSubstr("NAME=VALUE"));
}

TEST(ParseOptions, ReadsLimits) {
  const Options options =
      WithModel({"--memory=12g", "--cpus=1.5", "--pids-limit=100",
                 "--scratch-size=512m", "--stop-timeout=0"});
  EXPECT_EQ(options.memory_bytes, int64_t{12} << 30);
  EXPECT_EQ(options.cpus, 1.5);
  EXPECT_EQ(options.pids_limit, 100);
  EXPECT_EQ(options.scratch_bytes, 512 << 20);
  EXPECT_EQ(options.stop_seconds, 0);
  EXPECT_EQ(WithModel({"--memory=0"}).memory_bytes, 0);
}

TEST(ParseOptions, TakesUnitsInEitherCase) {
  const std::map<std::string, int64_t> sizes = {
      {"1048576", 1048576},       {"2097152b", 2097152},
      {"2048k", 2 << 20},         {"512M", 512 << 20},
      {"1.5g", int64_t{3} << 29}, {"6GB", int64_t{6} << 30},
      {"1t", int64_t{1} << 40},   {"25274793984", 25274793984}};
  for (const auto& [text, bytes] : sizes) {
    EXPECT_EQ(WithModel({"--scratch-size=" + text}).scratch_bytes, bytes);
  }
}

TEST(ParseOptions, RefusesValuesThatAreNone) {
  const std::map<std::string, std::vector<std::string>> wrong = {
      {"--memory=", {"much", "1k", "-1", ""}},
      {"--cpus=",
       {"", ".", "2.", ".5", "x", "-1", "0.001", "1e3", "nan", "1.2.3", "0x1",
        "2 ", "12345678901"}},
      {"--pids-limit=", {"x", "", "-1", "+1", "1.0", "1k", "99999999999"}},
      {"--scratch-size=",
       {"0", "", "g", "b", "-1g", "1x", "1gg", "1 g", " 1g", "1e9", "0x10",
        "1.g", ".5g", "1,5g", "nan", "inf", "99999999999999999999",
        "999999999t"}},
      {"--stop-timeout=", {"-1"}},
      {"--engine=", {"lxc"}},
      {"--network=", {"", "-x"}},
      {"--name=", {"x", "-x", "a b"}},
      {"--docker-image=", {"", "-v", "a b"}},
      {"--cap-add=", {"", "A,"}},
      {"--user=", {"", "a:", "-x"}},
      {"--volume=", {"x", ""}},
      {"--env=", {""}},
      {"--verbose=", {"yes"}},
      {"--pre-trained-model-dir=", {""}}};
  for (const auto& [flag, values] : wrong) {
    for (const std::string& value : values) {
      EXPECT_THAT(Refusal({"-p/m", flag + value}), testing::StartsWith("--"))
          << flag << value;
    }
  }
}

TEST(ParseOptions, TellsWhatIsWrong) {
  EXPECT_THAT(Refusal({}), HasSubstr("--pre-trained-model-dir is missing"));
  EXPECT_EQ(Refusal({"--docker-imge=x"}),
            "unknown flag --docker-imge (did you mean \"--docker-image\"?)");
  EXPECT_EQ(Refusal({"-x"}), "unknown flag -x");
  EXPECT_EQ(Refusal({"--ve"}), "--ve could be --verbose or --version");
  EXPECT_THAT(Refusal({"-p"}), HasSubstr("needs a value, DIR"));
  EXPECT_THAT(Refusal({"--memory", "--cpus=1"}), HasSubstr("needs a value"));
  EXPECT_THAT(Refusal({"-p/m", "requant"}), HasSubstr("goes after --"));
  EXPECT_THAT(Refusal({"-p/m", ""}), HasSubstr("unexpected argument ''"));
  EXPECT_THAT(Refusal({"-p/m", "--"}), HasSubstr("no command"));
  EXPECT_THAT(Refusal({"--test", "--", "x"}), HasSubstr("cannot go together"));
}

TEST(ParseOptions, TestHelpAndVersionNeedNoModel) {
  EXPECT_TRUE(Parsed({"--test"}).test);
  EXPECT_TRUE(Parsed({"-t"}).model_dir.empty());
  EXPECT_TRUE(Parsed({"--help"}).help);
  EXPECT_TRUE(Parsed({"-h"}).help);
  EXPECT_TRUE(Parsed({"--version"}).version);
}

TEST(Relaxations, NameEachFlagThatMakesItLessSafe) {
  EXPECT_THAT(Relaxations(WithModel({"--network=none", "--memory=1g"})),
              ElementsAre());
  EXPECT_THAT(
      Relaxations(WithModel({"--network=host", "--writable-root",
                             "--allow-new-privileges", "--cap-add=SYS_PTRACE",
                             "--user=root", "--privileged", "--memory=0",
                             "--pids-limit=0"})),
      ElementsAre(HasSubstr("--network=host"), HasSubstr("--writable-root"),
                  HasSubstr("--allow-new-privileges"),
                  HasSubstr("--cap-add=SYS_PTRACE"), HasSubstr("--user=root"),
                  HasSubstr("--privileged"), HasSubstr("--memory=0"),
                  HasSubstr("--pids-limit=0")));
}

TEST(HelpText, HasEveryFlagThatTheReadmeHas) {
  for (const char* flag :
       {"-i, --docker-image=", "-p, --pre-trained-model-dir=", "-t, --test",
        "-v, --verbose", "--dry-run", "--volume=", "--env=", "--engine=",
        "--memory=", "--cpus=", "--network=", "--writable-root",
        "--allow-new-privileges", "--cap-add=", "--user=", "--privileged",
        "--pids-limit=", "--scratch-size="}) {
    EXPECT_THAT(HelpText(), HasSubstr(flag));
  }
}

}  // namespace
}  // namespace requant::launch::options_test
