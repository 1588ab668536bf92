// Tests the program `dataset` as people run it.

#include <set>

#include "absl/strings/str_split.h"
#include "graph/testing/program.h"
#include "runtime/datasets/criteo/criteo_format.h"

namespace requant::dataset_test {
namespace {

ProgramRun RunDataset(const std::vector<std::string>& arguments) {
  return RunProgram("runtime/datasets/dataset", arguments);
}

class Dataset : public testing::Test, protected TestFolder {
 protected:
  // Runs it; it must succeed.
  ProgramRun Run(const std::vector<std::string>& arguments) const {
    const ProgramRun run = RunDataset(arguments);
    EXPECT_THAT(run, Exits(0));
    return run;
  }

  void Synthesize(const std::string& name,
                  std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"synthesize", "--out=" + Path(name)});
    Run(arguments);
  }

  const std::string folder_ = Path("");
};

TEST_F(Dataset, FirstRowsDoNotDependOnTheRowCount) {
  Synthesize("few.csv", {"--rows=50", "--split=eval"});
  Synthesize("many.csv", {"--rows=500", "--split=eval"});
  EXPECT_THAT(Read("many.csv"), StartsWith(Read("few.csv")));
}

TEST_F(Dataset, SplitsAndSeedsDiffer) {
  std::set<std::string> all;
  for (const char* split : {"train", "calibration", "eval"}) {
    for (const char* seed : {"1", "2"}) {
      Synthesize("rows.csv", {"--rows=20", absl::StrCat("--split=", split),
                              absl::StrCat("--seed=", seed)});
      all.insert(Read("rows.csv"));
    }
  }
  EXPECT_EQ(all.size(), 6);
}

// The bundled model was trained on these rows, and its recorded accuracy was
// measured on them, so they must not change.
TEST_F(Dataset, RowsAreThoseTheCarriedModelKnows) {
  const std::pair<std::string, int64_t> digests[] = {
      {"train", 416448320840666345},
      {"calibration", 330059037842744356},
      {"eval", 4240485033214411881},
  };
  for (const auto& [split, digest] : digests) {
    Synthesize("rows.csv", {"--rows=2000", "--split=" + split});
    EXPECT_EQ(HashBucket(Read("rows.csv"), int64_t{1} << 62), digest) << split;
  }
}

TEST_F(Dataset, TellsWhatWasDrawn) {
  const ProgramRun run = Run({"synthesize", "--rows=100", "--split=eval",
                              "--out=-", "--summary_out=" + Path("a.json")});
  Synthesize("a.csv", {"--rows=100", "--split=eval"});
  EXPECT_EQ(run.out, Read("a.csv"));
  EXPECT_THAT(run.error, AllOf(HasSubstr("100 rows"), HasSubstr("% positive"),
                               HasSubstr("% expected")));
  int positives = 0;
  for (std::string_view line :
       absl::StrSplit(run.out, '\n', absl::SkipEmpty())) {
    positives += line[0] == '1';
  }
  EXPECT_THAT(
      Read("a.json"),
      AllOf(HasSubstr("\"split\": \"eval\""), HasSubstr("\"rows\": 100"),
            HasSubstr(absl::StrCat("\"positives\": ", positives))));
}

TEST_F(Dataset, RangesAreThoseOfAllFiles) {
  Synthesize("train.csv", {"--rows=300"});
  Synthesize("eval.csv", {"--rows=200", "--split=eval"});
  const std::string ranges = "--ranges=" + Path("r.json");
  Run({"preprocess", "--out_dir=" + folder_, "--ranges_out=" + Path("r.json"),
       Path("train.csv"), Path("eval.csv")});
  const std::string together = Read("dataset_preprocessed_eval.tfrecords");
  Run({"preprocess", ranges, "--out=" + Path("later"), Path("eval.csv")});
  EXPECT_EQ(Read("later"), together);
  Run({"preprocess", "--out=" + Path("alone"), Path("eval.csv")});
  EXPECT_NE(Read("alone"), together);
  Synthesize("direct",
             {"--rows=200", "--split=eval", "--format=preprocessed", ranges});
  EXPECT_EQ(Read("direct"), together);
}

TEST_F(Dataset, SynthesizedRecordsAreThoseOfTheText) {
  Synthesize("eval.csv", {"--rows=200", "--split=eval"});
  Run({"preprocess", "--format=tfrecord", "--out_dir=" + folder_,
       Path("eval.csv")});
  Synthesize("raw", {"--rows=200", "--split=eval", "--format=tfrecord"});
  EXPECT_EQ(Read("dataset_raw_eval.tfrecords"), Read("raw"));
}

TEST_F(Dataset, SkipsBadRowsAndShowsTheFirst) {
  Synthesize("good.csv", {"--rows=30"});
  std::string bad;
  for (int i = 0; i < 8; ++i) absl::StrAppend(&bad, "bad row ", i, "\n");
  Write("rows.csv", bad + Read("good.csv"));
  const ProgramRun outcome =
      Run({"preprocess", "--out=" + Path("rows"), Path("rows.csv")});
  EXPECT_THAT(outcome.error,
              AllOf(HasSubstr("rows.csv:5: the row has 1 column"),
                    Not(HasSubstr("rows.csv:6:")), HasSubstr("30 rows"),
                    HasSubstr("8 bad rows")));
  Run({"preprocess", "--out=" + Path("good"), Path("good.csv")});
  EXPECT_EQ(Read("rows"), Read("good"));
}

TEST_F(Dataset, StrictRefusesBadRowsAndLeavesNothing) {
  Synthesize("a.csv", {"--rows=30"});
  Write("b.csv", Read("a.csv") + "bad\n");
  Write("r.json", "");
  Run({"preprocess", "--out=/dev/null", "--ranges_out=" + Path("r.json"),
       Path("a.csv")});
  const std::vector<std::string> before = Names();
  for (const std::string& ranges :
       {std::string("--ranges="), "--ranges=" + Path("r.json")}) {
    EXPECT_THAT(RunDataset({"preprocess", "--strict", "--out_dir=" + folder_,
                            ranges, Path("a.csv"), Path("b.csv")}),
                Exits(1, HasSubstr("b.csv:31: the row has 1 column")));
    EXPECT_THAT(Names(), testing::UnorderedElementsAreArray(before));
  }
}

TEST_F(Dataset, AFileWithoutAGoodRowKeepsAllOutputsFromBeingWritten) {
  Synthesize("good.csv", {"--rows=3"});
  Write("empty.csv", "");
  Write("bad.csv", "x\n");
  EXPECT_THAT(RunDataset({"preprocess", "--out_dir=" + folder_,
                          Path("good.csv"), Path("empty.csv")}),
              Exits(1, HasSubstr("empty.csv has no rows")));
  EXPECT_THAT(
      RunDataset({"preprocess", "--format=tfrecord", "--out_dir=" + folder_,
                  Path("good.csv"), Path("bad.csv")}),
      Exits(1,
            HasSubstr("preprocess: " + Path("bad.csv") + " has no good row")));
  EXPECT_THAT(Names(),
              UnorderedElementsAre("good.csv", "empty.csv", "bad.csv"));
}

TEST_F(Dataset, RefusesToReadAPipeTwice) {
  EXPECT_THAT(RunDataset({"preprocess", "--out=" + Path("out"), "-"}),
              Exits(1, HasSubstr("cannot be read twice")));
}

TEST_F(Dataset, MistakesOnTheCommandLineAreUsageErrors) {
  const std::string out = "--out=" + Path("out");
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{}, "Commands:"},
      {{"synthesise"}, "did you mean \"synthesize\""},
      {{"synthesize"}, "--output is missing"},
      {{"synthesize", out, "--rows=-1"}, "--rows"},
      {{"synthesize", out, "--split=test"}, "--split is"},
      {{"synthesize", out, "--format=parquet"}, "--format is"},
      {{"synthesize", out, "--format=preprocessed"}, "--ranges=FILE"},
      {{"synthesize", out, "--ranges=r.json"}, "--ranges=FILE"},
      {{"synthesize", out, "--strict"}, "no flag --strict"},
      {{"synthesize", out, "x.csv"}, "takes no argument"},
      {{"preprocess"}, "no file"},
      {{"preprocess", "--seed=1", "x.csv"}, "no flag --seed"},
      {{"preprocess", "--buckets=0", "x.csv"}, "--buckets"},
      {{"preprocess", out, "x.csv", "y.csv"}, "use --out_dir"},
      {{"preprocess", "a/x.csv", "b/x.csv"}, "two inputs"},
      {{"preprocess", "-"}, "standard input needs --output"},
      {{"preprocess", "--ranges=a", "--ranges_out=b", "x.csv"}, "--ranges_out"},
  };
  for (const auto& [arguments, message] : cases) {
    EXPECT_THAT(RunDataset(arguments), Exits(2, HasSubstr(message)));
  }
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(Dataset, NamesWhatCannotBeReadOrWritten) {
  Synthesize("x.csv", {"--rows=3"});
  EXPECT_THAT(RunDataset({"preprocess", "--out=" + Path("out"), Path("y.csv")}),
              Exits(1, HasSubstr("cannot read " + Path("y.csv"))));
  EXPECT_THAT(
      RunDataset({"preprocess", "--out_dir=" + Path("none"), Path("x.csv")}),
      Exits(1, HasSubstr("cannot write " + Path("none"))));
  EXPECT_THAT(RunDataset({"synthesize", "--rows=9", "--out=/dev/full"}),
              Exits(1, HasSubstr("No space left")));
  // This fails before the work.
  EXPECT_THAT(RunDataset({"preprocess", "--ranges_out=" + Path("no/such.json"),
                          "--out=" + Path("out"), Path("x.csv")}),
              Exits(1, HasSubstr("no/such.json")));
  EXPECT_THAT(Names(), UnorderedElementsAre("x.csv"));
}

TEST_F(Dataset, EachCommandHasItsOwnHelp) {
  EXPECT_THAT(Run({"--help"}).out,
              AllOf(HasSubstr("synthesize"), HasSubstr("preprocess")));
  EXPECT_THAT(Run({"synthesize", "--help"}).out,
              AllOf(HasSubstr("--seed"), Not(HasSubstr("--strict"))));
  EXPECT_THAT(Run({"preprocess", "--help"}).out,
              AllOf(HasSubstr("--strict"), Not(HasSubstr("--seed"))));
}

TEST_F(Dataset, RefusesToOverwriteInputsAndOtherOutputs) {
  Run({"synthesize", "--rows=5", "--out=" + Path("e.csv")});
  const std::string before = Read("e.csv");
  const std::vector<std::string> commands[] = {
      {"preprocess", "--out=" + Path("e.csv"), Path("e.csv")},
      {"preprocess", "--out=" + Path("x"), "--ranges_out=" + Path("./x"),
       Path("e.csv")},
      {"synthesize", "--rows=5", "--out=" + Path("x"),
       "--summary_out=" + Path("x")}};
  for (const auto& command : commands) {
    EXPECT_THAT(RunDataset(command),
                Exits(1, HasSubstr("cannot write " + folder_)));
  }
  EXPECT_EQ(Read("e.csv"), before);
  EXPECT_THAT(Names(), UnorderedElementsAre("e.csv"));
}

}  // namespace
}  // namespace requant::dataset_test
