// Runs the program as people do.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/process/subprocess.h"

namespace requant::parse_min_max_log_test {
namespace {

using testing::HasSubstr;

std::string TestPath(const std::string& name) {
  return ::testing::TempDir() + "/" + name;
}

std::string Write(const std::string& name, std::string_view contents) {
  const std::string path = TestPath(name);
  EXPECT_TRUE(WriteFileAtomically(path, contents).ok());
  return path;
}

struct Result {
  int exit_code = -1;
  std::string out;
  std::string err;
};

Result RunProgram(const std::vector<std::string>& arguments,
                  const std::string& stdin_path = "/dev/null") {
  const std::string program = absl::StrCat(std::getenv("TEST_SRCDIR"), "/",
                                           std::getenv("TEST_WORKSPACE"),
                                           "/logs_parser/parse_min_max_log");
  Result result;
  ChildOptions options;
  options.argv = {"/bin/sh", "-c",       "in=$1; shift; exec \"$@\" < \"$in\"",
                  "sh",      stdin_path, program};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  options.on_stdout = [&](std::string_view line) {
    absl::StrAppend(&result.out, line, "\n");
  };
  options.on_stderr = [&](std::string_view line) {
    absl::StrAppend(&result.err, line, "\n");
  };
  const auto child = RunChild(options);
  EXPECT_TRUE(child.ok()) << child.status();
  if (child.ok()) result.exit_code = child->exit_code;
  return result;
}

// Returns eight batches with min -1, ..., -8 in disorder and max 2.
std::string SmallLog() {
  std::string log = "loading the model\n";
  for (const int i : {3, 1, 8, 2, 7, 4, 6, 5}) {
    absl::StrAppend(&log, ";dnn/x__print__;__requant_min_max:[-", i, "][2]\n");
  }
  return log;
}

TEST(ParseMinMaxLog, PrintsATable) {
  const Result result = RunProgram({Write("table.log", SmallLog())});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out,
            "   count       lowest           p5          p50          p95      "
            "highest       frozen  side node\n"
            "       8           -8           -8           -4           -1      "
            "     -1           -8  min  dnn/x\n"
            "       8            2            2            2            2      "
            "      2            2  max  dnn/x\n"
            "frozen: percentile 5 from below for min, 5 from above for max\n"
            "8 observations of 1 node output, 0 malformed, from 1 file\n");
  EXPECT_EQ(result.err, "");
}

TEST(ParseMinMaxLog, ShowsTheValueOfThePercentilesGiven) {
  const Result result =
      RunProgram({"--format=csv", "--min_percentile=25", "--max_percentile=0",
                  Write("percentile.log", SmallLog())});
  EXPECT_EQ(result.out,
            "node,side,count,lowest,p5,p50,p95,highest,frozen\n"
            "dnn/x,min,8,-8,-8,-4,-1,-1,-6\n"
            "dnn/x,max,8,2,2,2,2,2,2\n");
}

TEST(ParseMinMaxLog, PrintsJson) {
  const std::string path =
      Write("json.log",
            ";a__print__;__min:[nan]\n;a__print__;__min:[-1]\n"
            ";a__print__;__min:[\"\x01]\n");
  const Result result = RunProgram({"--format=json", "-"}, path);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, R"json({
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
)json");
}

TEST(ParseMinMaxLog, ReadsStdinAndSeveralFiles) {
  const std::string one = Write("one.log", SmallLog());
  const std::string two = Write("two.log", SmallLog());
  const Result result = RunProgram({one, "-"}, two);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(
      result.out,
      HasSubstr("16 observations of 1 node output, 0 malformed, from 2 files"));
}

TEST(ParseMinMaxLog, WritesARangeTableThatItReadsBack) {
  const std::string log = Write("write.log", SmallLog());
  const std::string ranges = TestPath("write.ranges");
  const Result written = RunProgram({"--format=csv", log, "--output", ranges});
  EXPECT_EQ(written.exit_code, 0);
  const Result read = RunProgram({"--format=csv", ranges});
  EXPECT_EQ(read.exit_code, 0);
  EXPECT_EQ(read.out, written.out);
}

TEST(ParseMinMaxLog, AddsALogToARangeTable) {
  const std::string log = Write("add.log", SmallLog());
  const std::string ranges = TestPath("add.ranges");
  ASSERT_EQ(RunProgram({log, "--output", ranges}).exit_code, 0);
  EXPECT_THAT(RunProgram({ranges, log}).out, HasSubstr("16 observations"));
}

TEST(ParseMinMaxLog, ShowsMalformedRecordsWithTheirPlace) {
  const std::string path =
      Write("malformed.log", SmallLog() + ";dnn/x__print__;__min:[-1");
  const Result result = RunProgram({path});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr(absl::StrCat(
                              "parse_min_max_log: warning: ", path,
                              ":10: expected __min:[<value>], found a record "
                              "cut short: ;dnn/x__print__;__min:[-1\n")));
}

TEST(ParseMinMaxLog, StrictFailsOnMalformedRecordsAndWritesNothing) {
  const std::string path =
      Write("strict.log", SmallLog() + ";dnn/x__print__;__min:[-1");
  const std::string ranges = TestPath("strict.ranges");
  const Result result = RunProgram({"--strict", path, "--output", ranges});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(
      result.err,
      HasSubstr("--strict allows no malformed records, and there are 1"));
  EXPECT_NE(access(ranges.c_str(), F_OK), 0);
}

TEST(ParseMinMaxLog, WarnsOfARangeThatIsStillDrifting) {
  std::string log;
  for (int i = 1; i <= 40; ++i) {
    absl::StrAppend(&log, ";a__print__;__max:[", i, "]\n");
  }
  const Result result = RunProgram({Write("drift.log", log)});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err,
            "parse_min_max_log: warning: a: max moved by 23% of the range in "
            "the last quarter of 40 values (30 -> 39); the log ends before the "
            "range has settled: log more batches\n");
}

TEST(ParseMinMaxLog, ALogWithoutRecordsIsAnErrorThatShowsThem) {
  const std::string path = Write("none.log", "hello\nworld\n");
  const Result result = RunProgram({path});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err,
            absl::StrCat(
                "parse_min_max_log: no range record in the 2 lines of ", path,
                "; expected lines such as "
                ";<node>__print__;__requant_min_max:[<min>][<max>] or "
                ";<node>__print__;__min:[<value>] or "
                ";<node>__print__;__max:[<value>]: add them to the graph with "
                "insert_logging (show_name=true) and keep the run's stderr\n"));
}

TEST(ParseMinMaxLog, WrongUseIsExitCodeTwo) {
  const std::string path = Write("use.log", SmallLog());
  EXPECT_EQ(RunProgram({}).exit_code, 2);
  EXPECT_EQ(RunProgram({"--format=xml", path}).exit_code, 2);
  EXPECT_EQ(RunProgram({"--min_percentile=101", path}).exit_code, 2);
  EXPECT_EQ(RunProgram({"--min_percentile=nan", path}).exit_code, 2);
}

TEST(ParseMinMaxLog, AMissingFileIsOneSentence) {
  const Result result = RunProgram({TestPath("missing.log")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, absl::StrCat("parse_min_max_log: cannot open the log ",
                                     TestPath("missing.log"),
                                     ": No such file or directory\n"));
}

}  // namespace
}  // namespace requant::parse_min_max_log_test
