#include "logs_parser/log_record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/testing/fuzz_rounds.h"
#include "base/testing/mutated_text.h"

namespace requant::log_record_test {
namespace {

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

TEST(FindRecords, FindsWhatPrintWrites) {
  for (const auto& [line, records] :
       std::vector<std::pair<std::string, Strings>>{
           // The three kinds.
           {";a/b__print__;__requant_min_max:[-1.5][2.25]", {"a/b -1.5..2.25"}},
           {";a/b__print__;__min:[-3]", {"a/b min -3"}},
           {";a/b__print__;__max:[4]", {"a/b max 4"}},
           // Every character of node names; one may end like a Print's.
           {";_A.z-9/w>x\\y_1__print__;__min:[1]", {"_A.z-9/w>x\\y_1 min 1"}},
           {";a__print____print__;__min:[1]", {"a__print__ min 1"}},
           // Text before and after.
           {"2026-01-02 03:04:05; I log.cc:9] "
            ";Min;;a__print__;__min:[1] after [that]\r",
            {"a min 1"}},
           {"\xff\xfe;a__print__;__min:[1]\xff", {"a min 1"}},
           {";a__print__;__min:[1][INFO] text", {"a min 1"}},
           // Text without a marker.
           {"", {}},
           {"step 5; loss 0.1 __min:[1]", {}},
           {";a__print__;another message:[1]", {}},
           // Numbers.
           {";a__print__;__requant_min_max:[-1.5e-05][1e+06]",
            {"a -1.49999996e-05..1000000"}},
           {";a__print__;__requant_min_max:[-inf][nan]", {"a -inf..nan"}},
           {";a__print__;__max:[1e39]", {"a max inf"}},
           {";a__print__;__max:[1e-60]", {"a max 0"}},
           // The extreme of a tensor, which may not be finite.
           {";a__print__;__min:[[0.5]]", {"a min 0.5"}},
           {";a__print__;__requant_min_max:[3 1 2][3 5 4]", {"a 1..5"}},
           {";a__print__;__max:[[1 7][3 4]]", {"a max 7"}},
           {";a__print__;__max:[[[1][2]][[9][4]]]", {"a max 9"}},
           {";a__print__;__min:[1 inf 2]", {"a min inf"}},
           // Records glued on one line.
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

// Returns a line of parts of records, most of them in a sensible order.
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

// Returns what the fast way makes of a number, or nothing.
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

// The fast way may only give what the grammar gives, and must not be idle.
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
}  // namespace requant::log_record_test
