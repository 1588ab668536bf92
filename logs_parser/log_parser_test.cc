#include "logs_parser/log_parser.h"

#include <map>
#include <random>

#include "absl/strings/str_format.h"
#include "base/testing/fuzz_rounds.h"
#include "base/testing/mutated_text.h"
#include "base/testing/testing.h"

namespace requant::log_parser_test {
namespace {

using Floats = std::vector<float>;

// Returns all that is in a result, as text to compare two results by.
std::string Dump(const ParsedLogs& logs) {
  std::string text;
  for (const auto& [key, entry] : logs.ranges.entries()) {
    absl::StrAppendFormat(&text, "%s %d n=%d", key.first, key.second,
                          entry.count);
    for (float value : entry.mins) absl::StrAppendFormat(&text, " %.9g", value);
    text += " |";
    for (float value : entry.maxs) absl::StrAppendFormat(&text, " %.9g", value);
    absl::StrAppendFormat(&text, " not finite %d %s inverted %d %s\n",
                          entry.not_finite.count, entry.not_finite.first_place,
                          entry.inverted.count, entry.inverted.first_place);
  }
  for (const LogFileCounts& file : logs.files) {
    absl::StrAppendFormat(&text, "%s %d %d %d %d\n", file.file, file.bytes,
                          file.lines, file.records, file.malformed);
  }
  for (const MalformedRecord& malformed : logs.first_malformed) {
    absl::StrAppend(&text, DescribeMalformed(malformed), "\n");
  }
  return text;
}

TEST(ParseLog, CollectsValuesByNodeInTheOrderLogged) {
  const ParsedLogs logs = ParseLogText(
      ";b__print__;__requant_min_max:[-1][2]\n"
      ";a__print__;__min:[-3]\n"
      "noise\n"
      ";b__print__;__requant_min_max:[-4][1]\n"
      ";c__print__;__max:[5]\n");
  EXPECT_EQ(logs.ranges.Find("b")->mins, (Floats{-1, -4}));
  EXPECT_EQ(logs.ranges.Find("b")->maxs, (Floats{2, 1}));
  EXPECT_EQ(logs.ranges.Find("a")->mins, Floats{-3});
  EXPECT_EQ(logs.ranges.Find("a")->maxs, Floats{});
  EXPECT_EQ(logs.ranges.Find("c")->maxs, Floats{5});
  EXPECT_EQ(logs.records(), 4);
  EXPECT_EQ(logs.malformed(), 0);
  EXPECT_EQ(logs.files[0].lines, 5);
}

TEST(ParseLog, AnEmptyLogHasNothing) {
  const ParsedLogs logs = ParseLogText("");
  EXPECT_TRUE(logs.ranges.empty());
  EXPECT_EQ(logs.files[0].lines, 0);
}

TEST(ParseLog, ReadsALastLineWithoutALineBreak) {
  const ParsedLogs logs = ParseLogText("x\n;a__print__;__min:[1]");
  EXPECT_EQ(logs.ranges.Find("a")->mins, Floats{1});
  EXPECT_EQ(logs.files[0].lines, 2);
}

TEST(ParseLog, CountsATruncatedLastLine) {
  const ParsedLogs logs =
      ParseLogText(";a__print__;__min:[1]\n;a__print__;__min:[0.", "run.log");
  EXPECT_EQ(logs.records(), 1);
  EXPECT_EQ(logs.malformed(), 1);
  ASSERT_EQ(logs.first_malformed.size(), 1);
  EXPECT_EQ(DescribeMalformed(logs.first_malformed[0]),
            "run.log:2: expected __min:[<value>], found a record cut short: "
            ";a__print__;__min:[0.");
}

TEST(ParseLog, NotesWhereValuesAreNotFiniteOrInverted) {
  const ParsedLogs logs = ParseLogText(
      ";a__print__;__requant_min_max:[1][2]\n"
      ";a__print__;__requant_min_max:[nan][2]\n"
      "\n"
      ";a__print__;__requant_min_max:[2][1]\n",
      "run.log");
  EXPECT_EQ(logs.ranges.Find("a")->not_finite.first_place, "run.log:2");
  EXPECT_EQ(logs.ranges.Find("a")->inverted.first_place, "run.log:4");
  EXPECT_EQ(logs.malformed(), 0);
}

TEST(ParseLog, KeepsTheFirstMalformedAndCountsAll) {
  std::string text;
  for (int i = 0; i < 12; ++i) text += ";a__print__;__min:[x]\n";
  const ParsedLogs logs = ParseLogText(text);
  EXPECT_EQ(logs.malformed(), 12);
  ASSERT_THAT(logs.first_malformed, SizeIs(kMostMalformedKept));
  EXPECT_EQ(logs.first_malformed[1].place, "log:2");
}

TEST(ParseLog, ShowsAMalformedRecordInPrintableCharactersAndShort) {
  const ParsedLogs logs = ParseLogText(
      absl::StrCat(";a__print__;__min:[\x01", std::string(1000, 'x'), "]\n"));
  const std::string& excerpt = logs.first_malformed[0].excerpt;
  EXPECT_EQ(excerpt.substr(0, 24), ";a__print__;__min:[\\x01x");
  EXPECT_LT(excerpt.size(), 120);
}

TEST(ParseLog, TakesOneKindOnRequest) {
  LogParserOptions options;
  options.only_kind = RecordKind::kMin;
  const ParsedLogs logs = ParseLogText(
      ";a__print__;__requant_min_max:[1][2]\n;b__print__;__min:[3]\n"
      ";c__print__;__max:[4]\n",
      "log", options);
  EXPECT_EQ(logs.ranges.Find("a"), nullptr);
  EXPECT_EQ(logs.ranges.Find("b")->mins, Floats{3});
  EXPECT_EQ(logs.ranges.Find("c"), nullptr);
  EXPECT_EQ(logs.records(), 1);
}

TEST(ParseLog, FindsRecordsInBinaryGarbage) {
  std::mt19937 random(3);
  std::string text;
  for (int i = 0; i < 100; ++i) {
    for (int j = random() % 5000; j > 0; --j) {
      text.push_back(static_cast<char>(random()));
    }
    absl::StrAppend(&text, ";a__print__;__min:[", i, "]");
  }
  const ParsedLogs logs = ParseLogText(text);
  EXPECT_EQ(logs.records(), 100);
  EXPECT_EQ(logs.malformed(), 0);
}

TEST(ParseLogFiles, ReadsFilesInTheOrderGiven) {
  const ScratchFolder folder;
  const std::string one = folder.Write("one", ";a__print__;__min:[1]\n");
  const std::string two =
      folder.Write("two", ";a__print__;__min:[2]\n;a__print__;__min:[x]\n");
  ASSERT_OK_AND_ASSIGN(const ParsedLogs logs, ParseLogFiles({two, one}));
  EXPECT_EQ(logs.ranges.Find("a")->mins, (Floats{2, 1}));
  ASSERT_THAT(logs.files, SizeIs(2));
  EXPECT_EQ(logs.files[0].file, two);
  EXPECT_EQ(logs.files[0].malformed, 1);
  EXPECT_EQ(logs.files[1].malformed, 0);
  EXPECT_EQ(logs.first_malformed[0].place, two + ":2");
}

TEST(ParseLogFiles, DoesNotJoinTheEndOfOneFileToTheNext) {
  const ScratchFolder folder;
  ASSERT_OK_AND_ASSIGN(
      const ParsedLogs logs,
      ParseLogFiles({folder.Write("end", ";a__print__;__min:[1"),
                     folder.Write("start", "2]\n")}));
  EXPECT_EQ(logs.records(), 0);
  EXPECT_EQ(logs.malformed(), 1);
}

TEST(ParseLogFiles, NamesAMissingFileAndADirectory) {
  const ScratchFolder folder;
  const absl::Status missing = ParseLogFiles({folder.Path("no.log")}).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(missing, FailsWith(HasSubstr(folder.Path("no.log"))));
  EXPECT_THAT(ParseLogFiles({folder.path()}),
              FailsWith(HasSubstr("Is a directory")));
}

struct Oracle {
  std::map<std::string, std::pair<Floats, Floats>> values;
  int64_t records = 0;
};

// Returns a log with noise between and around its records, and what it holds.
std::string RandomLog(std::mt19937& random, Oracle* oracle) {
  static const auto& kNoise = *new std::vector<std::string>{
      "",    "I0101 00:00:00 x.cc:1] ", "\x1b[1;32m", "step; 5; ", "[INFO] ",
      "\xff"};
  static const auto& kEnds = *new std::vector<std::string>{
      "\n",          "\r\n", " \x1b[0m\n",
      "\nnoise\n\n", "",     "\n;other__print__;text:[1]\n"};
  std::string log;
  for (int i = random() % 200; i > 0; --i) {
    const std::string node = absl::StrCat("dnn/node_", random() % 7);
    const float min = static_cast<int>(random() % 2000) / 8.0f - 200;
    const float max = min + random() % 100;
    auto& [mins, maxs] = oracle->values[node];
    absl::StrAppend(&log, kNoise[random() % kNoise.size()]);
    const int kind = random() % 3;
    if (kind == 0)
      absl::StrAppend(&log, ";", node, "__print__;__min:[", min, "]");
    if (kind == 1)
      absl::StrAppend(&log, ";", node, "__print__;__max:[", max, "]");
    if (kind == 2) {
      absl::StrAppend(&log, ";", node, "__print__;__requant_min_max:[", min,
                      "][", max, "]");
    }
    if (kind != 1) mins.push_back(min);
    if (kind != 0) maxs.push_back(max);
    ++oracle->records;
    absl::StrAppend(&log, kEnds[random() % kEnds.size()]);
  }
  return log;
}

TEST(ParseLog, FindsEveryRecordOfRandomNoisyLogs) {
  std::mt19937 random(11);
  for (int repeat = 0; repeat < 300; ++repeat) {
    Oracle oracle;
    const std::string log = RandomLog(random, &oracle);
    const ParsedLogs logs = ParseLogText(log);
    ASSERT_EQ(logs.records(), oracle.records) << log;
    ASSERT_EQ(logs.malformed(), 0) << log;
    ASSERT_EQ(logs.ranges.entries().size(), oracle.values.size());
    for (const auto& [node, values] : oracle.values) {
      EXPECT_EQ(logs.ranges.Find(node)->mins, values.first);
      EXPECT_EQ(logs.ranges.Find(node)->maxs, values.second);
    }
  }
}

// However a log is cut into reads, and whichever way lines are parsed, the
// result is the same, on damaged logs too.
TEST(ParseLog, GivesTheSameOnMutatedLogsHoweverTheyAreRead) {
  std::mt19937 random(13);
  for (int repeat = 0; repeat < FuzzRounds(1000); ++repeat) {
    Oracle oracle;
    std::string log = RandomLog(random, &oracle);
    for (int i = random() % 10; i > 0 && !log.empty(); --i) {
      log = MutatedText(std::move(log), {";"}, &random);
    }
    LogParserOptions plain;
    plain.use_fast_way = false;
    const ParsedLogs expected = ParseLogText(log, "log", plain);
    LogParserOptions small;
    small.read_bytes = 1 + random() % 50;
    ASSERT_EQ(Dump(ParseLogText(log)), Dump(expected)) << log;
    ASSERT_EQ(Dump(ParseLogText(log, "log", small)), Dump(expected)) << log;
    int64_t counted = 0;
    for (const auto& [key, entry] : expected.ranges.entries()) {
      counted += entry.count;
      ASSERT_LE(entry.mins.size(), entry.count);
      ASSERT_LE(entry.maxs.size(), entry.count);
    }
    ASSERT_EQ(counted, expected.records());
    ASSERT_EQ(expected.files[0].bytes, log.size());
  }
}

}  // namespace
}  // namespace requant::log_parser_test
