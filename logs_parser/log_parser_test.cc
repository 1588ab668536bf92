#include "logs_parser/log_parser.h"

#include <sys/resource.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <random>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "base/testing/fuzz_rounds.h"
#include "base/testing/testing.h"

namespace requant::log_parser_test {
namespace {

using Floats = std::vector<float>;

// Returns a whole result as text, for comparing two results.
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

// Uses one line of 64 MB: first markers that are not ours, then no marker at
// all, and a record at the end.
TEST(ParseLogFiles, ALineOfAnyLengthTakesBoundedMemory) {
  const ScratchFolder folder;
  const std::string noise(1 << 20, 'x');
  std::string markers;
  while (markers.size() < noise.size()) markers += ";a__print__;text:[x] ";
  {
    std::ofstream log(folder.Path("long"));
    for (int i = 0; i < 64; ++i) log << (i < 32 ? markers : noise);
    log << ";a__print__;__min:[1]";
  }
  LogParserOptions options;
  options.max_line_bytes = 1 << 20;
  rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  ASSERT_OK_AND_ASSIGN(const ParsedLogs logs,
                       ParseLogFiles({folder.Path("long")}, options));
  getrusage(RUSAGE_SELF, &after);
  EXPECT_EQ(logs.files[0].lines, 1);
  EXPECT_EQ(logs.ranges.Find("a")->mins, Floats{1});
  constexpr int kKilobytes = 16 << 10;
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, kKilobytes);
}

struct Oracle {
  std::map<std::string, std::pair<Floats, Floats>> values;
  int64_t records = 0;
};

// Returns a log with noise between and around its records, and its contents.
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

// The result must not depend on how a log is split into reads or which parser
// is used, even for damaged logs.
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

std::string Text(const LogRecord& record) {
  switch (record.kind) {
    case RecordKind::kRequantMinMax:
      return absl::StrFormat("%s %.9g..%.9g", record.node, record.min,
                             record.max);
    case RecordKind::kMin:
      return absl::StrFormat("%s min %.9g", record.node, record.min);
    case RecordKind::kMax:
      return absl::StrFormat("%s max %.9g", record.node, record.max);
  }
  return "";
}

using Strings = std::vector<std::string>;

struct Found {
  Strings records;
  Strings reasons;
};

Found Find(std::string_view line) {
  Found found;
  FindRecords(
      line,
      [&](const LogRecord& record) { found.records.push_back(Text(record)); },
      [&](std::string reason, std::string_view candidate) {
        EXPECT_GE(candidate.data(), line.data());
        EXPECT_LE(candidate.data() + candidate.size(),
                  line.data() + line.size());
        found.reasons.push_back(std::move(reason));
      });
  return found;
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

TEST(FindRecords, FindsWhatPrintWrites) {
  for (const auto& [line, records] :
       std::vector<std::pair<std::string, Strings>>{
           // These are the three kinds.
           {";a/b__print__;__requant_min_max:[-1.5][2.25]", {"a/b -1.5..2.25"}},
           {";a/b__print__;__min:[-3]", {"a/b min -3"}},
           {";a/b__print__;__max:[4]", {"a/b max 4"}},
           // Names use every allowed character; one ends like Print's own text.
           {";_A.z-9/w>x\\y_1__print__;__min:[1]", {"_A.z-9/w>x\\y_1 min 1"}},
           {";a__print____print__;__min:[1]", {"a__print__ min 1"}},
           // Other text precedes and follows.
           {"2026-01-02 03:04:05; I log.cc:9] "
            ";Min;;a__print__;__min:[1] after [that]\r",
            {"a min 1"}},
           {"\xff\xfe;a__print__;__min:[1]\xff", {"a min 1"}},
           {";a__print__;__min:[1][INFO] text", {"a min 1"}},
           {"\x1b[32mI\x1b[0m ;a__print__;__min:[1]\x1b[0m\x1b[K", {"a min 1"}},
           // These have no marker.
           {"", {}},
           {"step 5; loss 0.1 __min:[1]", {}},
           {";a__print__;another message:[1]", {}},
           // These vary the form of numbers.
           {";a__print__;__requant_min_max:[-1.5e-05][1e+06]",
            {"a -1.49999996e-05..1000000"}},
           {";a__print__;__requant_min_max:[-inf][nan]", {"a -inf..nan"}},
           {";a__print__;__max:[1e39]", {"a max inf"}},
           {";a__print__;__max:[1e-60]", {"a max 0"}},
           // These take the extreme of a tensor, which may not be finite.
           {";a__print__;__min:[[0.5]]", {"a min 0.5"}},
           {";a__print__;__requant_min_max:[3 1 2][3 5 4]", {"a 1..5"}},
           {";a__print__;__max:[[1 7][3 4]]", {"a max 7"}},
           {";a__print__;__max:[[[1][2]][[9][4]]]", {"a max 9"}},
           {";a__print__;__min:[1 inf 2]", {"a min inf"}},
           // Several records are on one line.
           {";a__print__;__min:[1];b__print__;__max:[2];c__print__;__"
            "requant_min_max:[3][4]",
            {"a min 1", "b max 2", "c 3..4"}}}) {
    const Found found = Find(line);
    EXPECT_EQ(found.records, records) << line;
    EXPECT_EQ(found.reasons, Strings()) << line;
  }
}

TEST(FindRecords, FindsTheRecordThatCutsAnother) {
  const Found in_values = Find(";a__print__;__min:[1.;b__print__;__min:[2]5]");
  EXPECT_EQ(in_values.records, Strings{"b min 2"});
  EXPECT_EQ(in_values.reasons,
            Strings{"expected __min:[<value>], found a record cut short"});
  const Found in_message = Find(";a__print__;__requ;b__print__;__min:[2]");
  EXPECT_EQ(in_message.records, Strings{"b min 2"});
  EXPECT_EQ(in_message.reasons, Strings{"the record is cut short"});
  const Found in_node = Find(";a/hid;b__print__;__min:[2]");
  EXPECT_EQ(in_node.records, Strings{"b min 2"});
}

TEST(FindRecords, CountsARecordCutAnywhereBehindItsMarker) {
  const std::string line = ";a__print__;__requant_min_max:[-1.5][2.25]";
  const size_t marker_end = line.find("__print__;") + 10;
  for (size_t size = marker_end; size < line.size(); ++size) {
    const Found found = Find(line.substr(0, size));
    EXPECT_EQ(found.records, Strings()) << size;
    EXPECT_EQ(found.reasons.size(), 1) << size;
  }
}

TEST(FindRecords, SaysWhatIsWrongWithACandidate) {
  for (const auto& [line, reason] :
       std::vector<std::pair<std::string, std::string>>{
           {"a__print__;__min:[1]", "no ';' before the node's name"},
           {";__print__;__min:[1]",
            "the text between ';' and __print__ is not a node's name"},
           {";a/hi I0101 b__print__;__min:[1]",
            "the text between ';' and __print__ is not a node's name"},
           {";a__print__;__min:[0.1 0.2...]",
            "expected __min:[<value>], found values left out (\"...\"): log "
            "with a larger summarize"},
           {";a__print__;__min:[1][2]", "more values than __min: has"},
           {";a__print__;__requant_min_max:[1]",
            "expected __requant_min_max:[<min>][<max>], found a record cut "
            "short"},
           {";a__print__;__max:[]", "expected __max:[<value>]"},
           {";a__print__;__max:[0.10.5]", "expected __max:[<value>]"}}) {
    const Found found = Find(line);
    EXPECT_EQ(found.records, Strings()) << line;
    EXPECT_EQ(found.reasons, Strings{reason}) << line;
  }
}

// Returns a line of record parts, mostly in a sensible order.
std::string RandomLine(std::mt19937& random) {
  static const auto& kParts =
      *new Strings{";",      "__print__", "__print__;",
                   "__min:", "__max:",    "__requant_min_max:",
                   "[",      "]",         "1",
                   "-2.5",   "3e-5",      "nan",
                   "-inf",   "a",         "dnn/b_1",
                   " ",      "...",       ".",
                   "e",      "-",         "+",
                   "\r",     "\xff",      std::string(1, '\0'),
                   "1e39",   "1e-60"};
  const auto any = [&]() { return kParts[random() % kParts.size()]; };
  const auto value = [&]() {
    return absl::StrFormat("[%.*g]", 1 + static_cast<int>(random() % 9),
                           std::ldexp(static_cast<int>(random()) / 1e9,
                                      static_cast<int>(random() % 40) - 20));
  };
  std::string line;
  if (random() % 3 == 0) absl::StrAppend(&line, any(), any());
  absl::StrAppend(&line, ";node_", random() % 10, "__print__;");
  const int kind = random() % 3;
  absl::StrAppend(&line, kind == 0   ? "__min:"
                         : kind == 1 ? "__max:"
                                     : "__requant_min_max:");
  absl::StrAppend(&line, value(), kind == 2 ? value() : "");
  if (random() % 2 == 0) line = MutatedText(line, kParts, &random);
  return line;
}

// Returns the number parsed by the fast parser, or nullopt.
std::optional<float> FastNumber(const std::string& number) {
  LogRecord record;
  if (!ParseSingleRecord(absl::StrCat(";a__print__;__min:[", number, "]"),
                         &record)) {
    return std::nullopt;
  }
  return record.min;
}

TEST(ParseSingleRecord, RoundsNumbersNearTheMiddleOfTwoFloats) {
  std::mt19937 random(9);
  for (int repeat = 0; repeat < 100000; ++repeat) {
    const float low = std::ldexp(1 + random() / 4294967296.0f,
                                 static_cast<int>(random() % 40) - 12);
    const double middle =
        (static_cast<double>(low) + std::nextafter(low, 1e30f)) / 2;
    const std::string number =
        absl::StrFormat("%.*g", 6 + static_cast<int>(random() % 12), middle);
    float expected = 0;
    ASSERT_TRUE(absl::SimpleAtof(number, &expected));
    ASSERT_EQ(FastNumber(number), expected) << number;
  }
}

TEST(ParseSingleRecord, TakesOnlyWhatTheGrammarCallsANumber) {
  for (const char* number :
       {"1.", "1.5.2", "-", "--1", "1e", "0x10", "1,5", ".", "", " 1", "1 ",
        "inf", "-nan", "1e99", "12-3"}) {
    const Found found = Find(absl::StrCat(";a__print__;__min:[", number, "]"));
    if (FastNumber(number).has_value()) {
      EXPECT_EQ(found.records.size(), 1) << number;
    }
  }
}

bool SameBits(float a, float b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

// The fast parser must give only what the grammar gives, but not reject all.
TEST(ParseSingleRecord, AgreesWithTheGrammarOnRandomAndMutatedLines) {
  std::mt19937 random(7);
  int taken = 0;
  for (int repeat = 0; repeat < FuzzRounds(200000); ++repeat) {
    const std::string line = RandomLine(random);
    LogRecord fast;
    if (!ParseSingleRecord(line, &fast) || !IsNodeName(fast.node)) continue;
    ++taken;
    std::vector<LogRecord> records;
    int malformed = 0;
    FindRecords(
        line, [&](const LogRecord& record) { records.push_back(record); },
        [&](std::string, std::string_view) { ++malformed; });
    ASSERT_EQ(malformed, 0) << line;
    ASSERT_EQ(records.size(), 1) << line;
    ASSERT_EQ(records[0].kind, fast.kind) << line;
    ASSERT_EQ(records[0].node, fast.node) << line;
    const bool has_min = fast.kind != RecordKind::kMax;
    const bool has_max = fast.kind != RecordKind::kMin;
    ASSERT_TRUE(!has_min || SameBits(records[0].min, fast.min)) << line;
    ASSERT_TRUE(!has_max || SameBits(records[0].max, fast.max)) << line;
  }
  EXPECT_GT(taken, 50000);
}

}  // namespace
}  // namespace requant::log_parser_test
