// What requant convert, dump_graph and pb_to_pbtxt refuse, and what they leave
// when they fail or are killed.

#include <signal.h>

#include <thread>

#include "tests/support/convert_fixture.h"
#include "tests/support/processes.h"

namespace requant::convert_refusals_test {
namespace {

namespace fs = std::filesystem;

class ConvertRefusals : public ConvertTest {};

// What is wrong is reported at once, not after hours of measuring.
TEST_F(ConvertRefusals, ChecksAllBeforeItCalibrates) {
  fs::create_directories(folder.Path("taken/photos"));
  for (const auto& [flag, message] :
       std::vector<std::pair<std::string, std::string>>{
           {"--out=taken", "cannot write taken: it exists; --overwrite"},
           {"--out=no/such", "No such file or directory"},
           {"--signature=serving", "has no signature \"serving\""},
           {"--tags=train", "has no graph tagged {train}; it has {serve}"}}) {
    ExpectRefused(
        ConvertTiny({"--insert_qdq", "--dataset=missing.textproto", flag}),
        message, {"taken"});
  }
}

TEST_F(ConvertRefusals, InterruptedWhileCalibratingSaysBySignal) {
  const Running running = StartUntilItHasAWorker(
      kConvert,
      {absl::StrCat("--saved_model=", kTiny), "--out=" + folder.Path("out"),
       "--extracted_graph_def=", "--converted_graph_def=", "--insert_qdq",
       "--dataset=workflows/gptj_tiny/calibration.textproto"});
  // The folder of the result is made just before.
  while (folder.Names().empty() && IsAlive(running.program)) {
    std::this_thread::yield();
  }
  ASSERT_EQ(kill(running.program, SIGTERM), 0);
  EXPECT_EQ(WaitForExitCode(running.program), 128 + SIGTERM);
  EXPECT_THAT(folder.Names(), ElementsAre());
}

TEST_F(ConvertRefusals, LeavesNothingWhenCalibrationFails) {
  EXPECT_THAT(
      ConvertTiny({"--insert_qdq", "--out=out", "--dataset=missing.textproto"}),
      Fails("missing.textproto", "the calibration failed"));
  EXPECT_THAT(folder.Names(), ElementsAre());
}

TEST_F(ConvertRefusals, RefusesTransformsThatTakeAwayWhatTheModelNames) {
  EXPECT_THAT(
      ConvertTiny({"--out=out",
                   "--transforms=rename_node(old_node_name=\"saver_filename\", "
                   "new_node_name=\"other\")"}),
      Fails("removed the node \"saver_filename\", which "
            "the saver of the model names"));
  EXPECT_THAT(folder.Names(), ElementsAre());
}

TEST_F(ConvertRefusals, RefusesWrongTransformsAsUsage) {
  EXPECT_THAT(ConvertTiny({"--out=out", "--transforms=insert_qqdq"}),
              Misused("did you mean \"insert_qdq\"?"));
  const std::vector<std::vector<std::string>> wrong = {
      {"--ranges=fixed(-1,1)"},
      {"--insert_qdq", "--ranges=fixed(1,-1)"},
      {"--insert_qdq", "--ranges=calibrate"},
      {"--insert_qdq", "--ranges=a.ranges", "--dataset=d.textproto"},
      {"--insert_qdq", "--max_records=3"},
      {"--insert_qdq", "--ranges=a.ranges", "--batch_size=3"},
      {"--max_records=3"},
      {"--insert_qdq", "--missing=skip"},
      {"--insert_qdq", "--ranges=a.ranges", "--missing=no"},
      {"--copy=move"},
      {"--transforms=a("},
      {"stray"}};
  for (Words flags : wrong) {
    flags.push_back(TinyFlag());
    EXPECT_EQ(ConvertOnly(flags).exit_code, 2) << flags[0];
  }
  EXPECT_THAT(folder.Names(), ElementsAre());
}

// The tests of graph/saved_model have all that can be wrong with a model and
// with a target.
TEST_F(ConvertRefusals, TellsBadModelsInASentence) {
  const std::string model = Copy(kTinyModel, "model");
  fs::create_directory(folder.Path("empty"));
  const std::vector<std::string> left = {"model", "empty"};
  const auto refuse = [&](const Words& flags, const std::string& message) {
    ExpectRefused(ConvertOnly(Joined({"--out=out"}, flags)), message, left);
  };
  refuse({"--saved_model=missing"}, "No such file or directory");
  refuse({"--saved_model=empty"}, "empty is an empty folder");
  fs::resize_file(model + "/" + kData, 10);
  refuse({"--saved_model=model"}, "is cut short: it has 10 of");
  folder.Write("model/saved_model.pb", "");
  refuse({"--saved_model=model"}, "saved_model.pb is empty");
}

TEST_F(ConvertRefusals, TellsBadTargetsInASentence) {
  const std::string model = Copy(kTinyModel, "model");
  fs::create_directories(folder.Path("taken/photos"));
  folder.Write("file", "text");
  const std::vector<std::string> left = {"model", "taken", "file"};
  const auto refuse = [&](const Words& flags, const std::string& message) {
    ExpectRefused(ConvertModel(flags), message, left);
  };
  refuse({"--out=taken", "--overwrite"}, "other things than a SavedModel");
  refuse({"--out=file", "--overwrite"}, "it is a file");
  refuse({"--out=model", "--overwrite"}, "it is the model that is read");
  refuse({"--out=/proc/out"}, "cannot write /proc/out");
  ExpectSameFiles(kTinyModel, model);
}

TEST_F(ConvertRefusals, DoesNotWriteGraphsOverTheModel) {
  const std::string model = Copy(kTinyModel, "model");
  ExpectRefused(Run({"--saved_model=model", "--out=out",
                     "--extracted_graph_def=model/saved_model.pb"}),
                "it is also read", {"model"});
  ExpectRefused(
      Run({"--saved_model=model", "--out=out", "--extracted_graph_def=a.pb",
           "--converted_graph_def=a.pb"}),
      "two outputs", {"model"});
  Copy(kTinyModel, "out");
  for (const char* flag : {"--extracted_graph_def=out/graph.pb",
                           "--converted_graph_def=./out/variables/graph.pb"}) {
    ExpectRefused(
        Run({"--saved_model=model", "--out=out", "--overwrite", flag}),
        "it is inside out, which is written as a whole", {"model", "out"});
  }
  ExpectSameFiles(kTinyModel, folder.Path("out"));
}

TEST_F(ConvertRefusals, ReplacesAModelOnlyWhenAsked) {
  ASSERT_THAT(ConvertTiny({}), Exits(0));
  EXPECT_THAT(ConvertTiny({}), Fails("--overwrite replaces it"));
  EXPECT_THAT(ConvertTiny({"--overwrite", "--insert_qdq"}), Exits(0));
  EXPECT_THAT(folder.Names(), ElementsAre("converted_gptj_tiny"));
  EXPECT_GT(Pairs("converted_gptj_tiny"), 0);
}

TEST_F(ConvertRefusals, CopiesWhereItCannotLink) {
  const SmallDisk disk(folder.Path("disk"), "size=4m");
  if (!disk.mounted()) GTEST_SKIP() << "may not mount a small disk";
  EXPECT_THAT(ConvertTiny({"--out=disk/out", "--copy=link"}),
              Fails("--copy=auto"));
  EXPECT_TRUE(fs::is_empty(disk.path()));
  ASSERT_THAT(ConvertTiny({"--out=disk/out"}), Exits(0));
  ExpectSameFiles(kTinyModel, disk.path() + "/out");
}

TEST_F(ConvertRefusals, AsksForRoomBeforeItCopies) {
  const SmallDisk disk(folder.Path("disk"), "size=256k");
  if (!disk.mounted()) GTEST_SKIP() << "may not mount a small disk";
  EXPECT_THAT(ConvertTiny({"--out=disk/out"}),
              Fails("cannot write disk/out: it takes", "are free there"));
  EXPECT_TRUE(fs::is_empty(disk.path()));
}

TEST_F(ConvertRefusals, LeavesNothingWhenATransformCrashes) {
  ExpectRefused(
      ConvertTiny({"--out=out",
                   "--plugins=" + Absolute("tests/plugins/odd_plugin.so"),
                   "--transforms=abort"}),
      "the transform \"abort\" (1 of 1) was ended by SIGABRT", {});
}

// Killed without a chance to clean up, in the middle of its work.
TEST_F(ConvertRefusals, KilledLeavesNoModelAndTheNextRunTidiesUp) {
  const Running running = StartUntilItHasAWorker(
      kConvert,
      {absl::StrCat("--saved_model=", kTiny), "--out=" + folder.Path("out"),
       "--extracted_graph_def=", "--converted_graph_def=",
       "--plugins=tests/plugins/odd_plugin.so",
       absl::StrCat("--transforms=leave_temporary_file(path=\"",
                    folder.Path("mark"), "\", wait=true)")});
  while (folder.Names().size() < 2 && IsAlive(running.program)) {
    std::this_thread::yield();
  }
  ASSERT_EQ(kill(running.program, SIGKILL), 0);
  WaitForExitCode(running.program);
  WaitUntilGone(running.worker);
  EXPECT_THAT(folder.Names(),
              Contains(absl::StrCat(".out.tmp.", running.worker)));
  EXPECT_THAT(folder.Names(), Not(Contains("out")));
  ASSERT_THAT(ConvertTiny({"--out=out"}), Exits(0));
  EXPECT_THAT(folder.Names(),
              AllOf(Contains("out"),
                    Not(Contains(absl::StrCat(".out.tmp.", running.worker)))));
}

TEST_F(ConvertRefusals, ToolsForDumpsTellBadInputInASentence) {
  EXPECT_THAT(Run({}, "graph/pb_to_pbtxt"),
              Fails("cannot read converted_graph_def.pb"));
  folder.Write("a.pb", "no graph");
  EXPECT_THAT(Run({"a.pb"}, "graph/pb_to_pbtxt"), Exits(1));
  EXPECT_THAT(Run({"a", "b", "c"}, "graph/pb_to_pbtxt"), Exits(2));
  EXPECT_THAT(Run({"a.pb", "a.pb"}, "graph/pb_to_pbtxt").error,
              HasSubstr("it is also read"));
  EXPECT_THAT(Run({}, "graph/dump_graph"), Exits(2));
  EXPECT_THAT(Run({"--input_model=nowhere"}, "graph/dump_graph"), Exits(1));
  EXPECT_THAT(Run({"--input_model=" + Absolute(kTiny), "--tags=gpu"},
                  "graph/dump_graph")
                  .error,
              HasSubstr("it has {serve}"));
  EXPECT_THAT(folder.Names(), ElementsAre("a.pb"));
}

}  // namespace
}  // namespace requant::convert_refusals_test
