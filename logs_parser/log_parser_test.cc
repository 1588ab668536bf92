#include "logs_parser/log_parser.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files/file.h"
#include "base/testing/fuzz_rounds.h"

namespace requant::log_parser_test {
namespace {

using Floats = std::vector<float>;

std::string TestPath(const std::string& name) {
  return ::testing::TempDir() + "/" + name;
}

std::string Write(const std::string& name, std::string_view contents) {
  const std::string path = TestPath(name);
  EXPECT_TRUE(WriteFileAtomically(path, contents).ok());
  return path;
}

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

TEST(ParseLog, ReadsWindowsLineBreaks) {
  const ParsedLogs logs = ParseLogText(
      ";a__print__;__min:[1]\r\n;a__print__;__requant_min_max:[2][3]\r\n");
  EXPECT_EQ(logs.ranges.Find("a")->mins, (Floats{1, 2}));
  EXPECT_EQ(logs.malformed(), 0);
}

TEST(ParseLog, ReadsThroughColoursAnywhere) {
  const ParsedLogs logs = ParseLogText(
      "\x1b[32mI\x1b[0m "
      ";a\x1b[1;31m/"
      "b__pr\x1b[0mint__;__\x1b[01;31mmin\x1b[m:[\x1b[1m-1\x1b[0m.5]\x1b[K\n");
  ASSERT_NE(logs.ranges.Find("a/b"), nullptr);
  EXPECT_EQ(logs.ranges.Find("a/b")->mins, Floats{-1.5f});
  EXPECT_EQ(logs.malformed(), 0);
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
  LogParserOptions options;
  options.max_malformed_kept = 2;
  const ParsedLogs logs = ParseLogText(
      ";a__print__;__min:[x]\n;b__print__;__min:[x]\n;c__print__;__min:[x]\n",
      "log", options);
  EXPECT_EQ(logs.malformed(), 3);
  ASSERT_EQ(logs.first_malformed.size(), 2);
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
      // Escapes are left out: an unfinished one may hide what follows it.
      const char byte = static_cast<char>(random());
      text.push_back(byte == '\x1b' ? '\0' : byte);
    }
    absl::StrAppend(&text, ";a__print__;__min:[", i, "]");
  }
  const ParsedLogs logs = ParseLogText(text);
  EXPECT_EQ(logs.records(), 100);
  EXPECT_EQ(logs.malformed(), 0);
}

TEST(ParseLogFiles, ReadsFilesInTheOrderGiven) {
  const std::string one = Write("one.log", ";a__print__;__min:[1]\n");
  const std::string two =
      Write("two.log", ";a__print__;__min:[2]\n;a__print__;__min:[x]\n");
  const auto logs = ParseLogFiles({two, one});
  ASSERT_TRUE(logs.ok()) << logs.status();
  EXPECT_EQ(logs->ranges.Find("a")->mins, (Floats{2, 1}));
  ASSERT_EQ(logs->files.size(), 2);
  EXPECT_EQ(logs->files[0].file, two);
  EXPECT_EQ(logs->files[0].malformed, 1);
  EXPECT_EQ(logs->files[1].malformed, 0);
  EXPECT_EQ(logs->first_malformed[0].place, two + ":2");
}

TEST(ParseLogFiles, DoesNotJoinTheEndOfOneFileToTheNext) {
  const std::string one = Write("end.log", ";a__print__;__min:[1");
  const std::string two = Write("start.log", "2]\n");
  const auto logs = ParseLogFiles({one, two});
  EXPECT_EQ(logs->records(), 0);
  EXPECT_EQ(logs->malformed(), 1);
}

TEST(ParseLogFiles, ReadsStdin) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int stdin_copy = dup(STDIN_FILENO);
  dup2(ends[0], STDIN_FILENO);
  const std::string_view text =
      ";a__print__;__min:[x]\n;a__print__;__min:[1]\n";
  ASSERT_EQ(write(ends[1], text.data(), text.size()), text.size());
  close(ends[1]);
  const auto logs = ParseLogFiles({"-"});
  dup2(stdin_copy, STDIN_FILENO);
  ASSERT_TRUE(logs.ok()) << logs.status();
  EXPECT_EQ(logs->records(), 1);
  EXPECT_EQ(logs->first_malformed[0].place, "stdin:1");
}

TEST(ParseLogFiles, NamesAMissingFileAndADirectory) {
  const absl::Status missing = ParseLogFiles({TestPath("no.log")}).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(missing.message().find(TestPath("no.log")), std::string::npos);
  const absl::Status directory = ParseLogFiles({TestPath("")}).status();
  EXPECT_FALSE(directory.ok());
  EXPECT_NE(directory.message().find("Is a directory"), std::string::npos);
}

// One line of 64 MB: markers that are not ours, then no marker at all, and a
// record at the end.
TEST(ParseLogFiles, ALineOfAnyLengthTakesBoundedMemory) {
  const std::string path = TestPath("long.log");
  const std::string noise(1 << 20, 'x');
  std::string markers;
  while (markers.size() < noise.size()) markers += ";a__print__;text:[x] ";
  std::string_view record = ";a__print__;__min:[1]";
  const auto write_line = [&](int fd) {
    bool written = true;
    for (int i = 0; i < 64; ++i) {
      const std::string& part = i < 32 ? markers : noise;
      written &= write(fd, part.data(), part.size()) > 0;
    }
    written &= write(fd, record.data(), record.size()) > 0;
    return written ? absl::OkStatus() : absl::InternalError("write");
  };
  ASSERT_TRUE(WriteFileAtomically(path, write_line).ok());
  rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  const auto logs = ParseLogFiles({path});
  getrusage(RUSAGE_SELF, &after);
  unlink(path.c_str());
  ASSERT_TRUE(logs.ok()) << logs.status();
  EXPECT_EQ(logs->files[0].lines, 1);
  EXPECT_EQ(logs->ranges.Find("a")->mins, Floats{1});
  constexpr int kKilobytes = 16 << 10;
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, kKilobytes);
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
      log = MutatedText(std::move(log), {"\x1b["}, &random);
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

TEST(ParseLog, GivesTheSameWhenALineIsParsedInParts) {
  std::mt19937 random(17);
  for (int repeat = 0; repeat < 300; ++repeat) {
    Oracle oracle;
    std::string log = RandomLog(random, &oracle);
    for (char& byte : log) {
      if (byte == '\n') byte = ' ';
    }
    LogParserOptions parts;
    parts.read_bytes = 1 + random() % 100;
    parts.max_line_bytes = 100 + random() % 200;
    ASSERT_EQ(Dump(ParseLogText(log, "log", parts)), Dump(ParseLogText(log)))
        << log;
  }
}

// Returns the text left when it comes in pieces of `piece` bytes.
std::string Strip(std::string text, size_t piece = 1000) {
  EscapeStripper stripper;
  std::string left;
  for (size_t i = 0; i < text.size(); i += piece) {
    const size_t size = std::min(piece, text.size() - i);
    left.append(text, i, stripper.Strip(&text[i], size));
  }
  return left;
}

TEST(EscapeStripper, RemovesEscapeSequences) {
  for (const auto& [text, left] :
       std::vector<std::pair<std::string, std::string>>{
           {"[1;31m a\r\n\tb\x80", "[1;31m a\r\n\tb\x80"},
           // Colours, a title, a link, character sets and single escapes.
           {"a\x1b[01;31m\x1b[Kb\x1b[m\x1b[Kc", "abc"},
           {"a\x1b]0;title\x07z", "az"},
           {"a\x1b]8;;http://x\x1b\\z", "az"},
           {"a\x1b(Bb\x1b=c\x1b"
            "7d",
            "abcd"},
           // A broken sequence ends at the line break.
           {"a\x1b[01;\nb\x1b]0;title\nc\x1b\nd", "a\nb\nc\nd"},
           // A byte that no sequence can have, and an escape inside of one.
           {"a\x1b[1\x80z", "a\x80z"},
           {"a\x1b[01\x1b[0mz", "az"}}) {
    EXPECT_EQ(Strip(text), left);
  }
}

TEST(EscapeStripper, JoinsSequencesSpreadOverPieces) {
  const std::string text =
      "a\x1b[01;31mb\x1b]8;;x\x1b\\c\x1b(Bd\n\x1b[\ne\x1b]t\x07"
      "f";
  for (size_t piece = 1; piece < text.size(); ++piece) {
    EXPECT_EQ(Strip(text, piece), "abcd\n\nef") << "pieces of " << piece;
  }
}

}  // namespace
}  // namespace requant::log_parser_test
