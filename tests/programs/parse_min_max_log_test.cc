#include "tests/support/program_runs.h"

namespace requant::parse_min_max_log_test {
namespace {

class ParseMinMaxLog : public testing::Test {
 protected:
  // Runs the program in the folder, with `name` as its stdin.
  ProgramRun Parse(const Words& arguments, const std::string& name = "a.log") {
    return RunProgram(
        "/bin/sh",
        Joined({"-c",
                "program=$PWD/$1 && cd $2 && shift 2 && $program \"$@\" "
                "< " +
                    name,
                "sh", "logs_parser/parse_min_max_log", folder_.path()},
               arguments));
  }

  // Returns eight batches with min -1, ..., -8 in disorder and max 2.
  static std::string SmallLog() {
    std::string log = "loading the model\n";
    for (const int i : {3, 1, 8, 2, 7, 4, 6, 5}) {
      absl::StrAppend(&log, ";dnn/x__print__;__requant_min_max:[-", i,
                      "][2]\n");
    }
    return log;
  }

  ParseMinMaxLog() { folder_.Write("a.log", SmallLog()); }

  TestFolder folder_;
};

TEST_F(ParseMinMaxLog, PrintsATable) {
  EXPECT_THAT(
      Parse({"a.log"}),
      AllOf(Prints(testing::Eq(
                "   count       lowest           p5          p50          p95  "
                "    highest       frozen  side node\n"
                "       8           -8           -8           -4           -1  "
                "         -1           -8  min  dnn/x\n"
                "       8            2            2            2            2  "
                "          2            2  max  dnn/x\n"
                "frozen: percentile 5 from below for min, 5 from above for "
                "max\n"
                "8 observations of 1 node output, 0 malformed, from 1 file\n")),
            Exits(0, "")));
}

TEST_F(ParseMinMaxLog, ShowsTheValueOfThePercentilesGiven) {
  EXPECT_THAT(
      Parse({"--format=csv", "--min_percentile=25", "--max_percentile=0",
             "a.log"}),
      Prints(testing::Eq("node,side,count,lowest,p5,p50,p95,highest,frozen\n"
                         "dnn/x,min,8,-8,-8,-4,-1,-1,-6\n"
                         "dnn/x,max,8,2,2,2,2,2,2\n")));
}

TEST_F(ParseMinMaxLog, PrintsJson) {
  folder_.Write("json.log",
                ";a__print__;__min:[nan]\n;a__print__;__min:[-1]\n"
                ";a__print__;__min:[\"\x01]\n");
  EXPECT_THAT(Parse({"--format=json", "-"}, "json.log"),
              Prints(testing::Eq(R"json({
  "min_percentile": 5,
  "max_percentile": 5,
  "entries": [
    {"node": "a", "output": 0, "count": 2, "min": {"count": 1, "lowest": -1, "p5": -1, "p50": -1, "p95": -1, "highest": -1, "frozen": -1}, "not_finite": {"count": 1, "first": "stdin:1"}, "inverted": {"count": 0, "first": ""}}
  ],
  "files": [
    {"file": "stdin", "bytes": 70, "lines": 3, "records": 2, "malformed": 1}
  ],
  "malformed": [
    {"place": "stdin:3", "reason": "expected __min:[<value>]", "excerpt": ";a__print__;__min:[\\\"\\x01]"}
  ],
  "warnings": [
    "stdin: 1 malformed record left out",
    "stdin:3: expected __min:[<value>]: ;a__print__;__min:[\\\"\\x01]",
    "a: 1 value not finite, first at stdin:1; the freeze transforms refuse this node",
    "1 of 1 node output with fewer than 8 observations: too few to tell whether a range has settled; log more batches"
  ]
}
)json")));
}

TEST_F(ParseMinMaxLog, ReadsStdinAndSeveralFiles) {
  EXPECT_THAT(Parse({"a.log", "-"}),
              Prints("16 observations of 1 node output, 0 malformed, from 2 "
                     "files"));
}

TEST_F(ParseMinMaxLog, WritesARangeTableThatItReadsBackAndAddsALogTo) {
  const ProgramRun written =
      Parse({"--format=csv", "a.log", "--output", "a.ranges"});
  EXPECT_THAT(Parse({"--format=csv", "a.ranges"}),
              Prints(testing::Eq(written.out)));
  EXPECT_THAT(Parse({"a.ranges", "a.log"}), Prints("16 observations"));
}

TEST_F(ParseMinMaxLog, ShowsMalformedRecordsWhichStrictRefuses) {
  folder_.Write("bad.log", SmallLog() + ";dnn/x__print__;__min:[-1");
  EXPECT_THAT(Parse({"bad.log"}),
              Warns("parse_min_max_log: warning: bad.log:10: expected "
                    "__min:[<value>], found a record cut short: "
                    ";dnn/x__print__;__min:[-1\n"));
  EXPECT_THAT(Parse({"--strict", "bad.log", "--output", "b.ranges"}),
              AllOf(Fails("--strict allows no malformed records, and there "
                          "are 1"),
                    testing::Field(&ProgramRun::out, "")));
  EXPECT_THAT(folder_.Names(), ElementsAre("a.log", "bad.log"));
}

TEST_F(ParseMinMaxLog, WarnsOfARangeThatIsStillDrifting) {
  std::string log;
  for (int i = 1; i <= 40; ++i) {
    absl::StrAppend(&log, ";a__print__;__max:[", i, "]\n");
  }
  folder_.Write("drift.log", log);
  EXPECT_THAT(
      Parse({"drift.log"}),
      Exits(0,
            "parse_min_max_log: warning: a: max moved by 23% of the range "
            "in the last quarter of 40 values (30 -> 39); the log ends "
            "before the range has settled: log more batches\n"));
}

TEST_F(ParseMinMaxLog, ALogWithoutRecordsIsAnErrorThatShowsThem) {
  folder_.Write("none.log", "hello\nworld\n");
  EXPECT_THAT(
      Parse({"none.log"}),
      Exits(1,
            "parse_min_max_log: no range record in the 2 lines of none.log; "
            "expected lines such as "
            ";<node>__print__;__requant_min_max:[<min>][<max>] or "
            ";<node>__print__;__min:[<value>] or "
            ";<node>__print__;__max:[<value>]: add them to the graph with "
            "insert_logging (show_name=true) and keep the run's stderr\n"));
}

TEST_F(ParseMinMaxLog, WrongUseIsExitCodeTwo) {
  for (const char* flag :
       {"--format=xml", "--min_percentile=101", "--min_percentile=nan"}) {
    EXPECT_THAT(Parse({flag, "a.log"}), Exits(2)) << flag;
  }
  EXPECT_THAT(Parse({}), Exits(2));
}

TEST_F(ParseMinMaxLog, AMissingFileIsOneSentence) {
  EXPECT_THAT(Parse({"missing.log"}),
              Exits(1,
                    "parse_min_max_log: cannot open the log missing.log: No "
                    "such file or directory\n"));
}

}  // namespace
}  // namespace requant::parse_min_max_log_test
