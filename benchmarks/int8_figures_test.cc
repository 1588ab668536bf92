#include "benchmarks/int8_figures.h"

#include "graph/testing/testing.h"

namespace requant::int8_figures_test {
namespace {

using testing::ContainsRegex;

InstructionSet Working() { return {/*advertised=*/true, /*works=*/true}; }

CpuFeatures Everything() {
  CpuFeatures features;
  features.avx2 = features.avx_vnni = features.avx512 = features.avx512_vnni =
      Working();
  return features;
}

TEST(EffectiveIsa, IsTheBestThatWorksWithoutACap) {
  CpuFeatures features = Everything();
  EXPECT_EQ(EffectiveIsa(features, ""), Int8Isa::kVnni);
  features.avx512_vnni = {};
  EXPECT_EQ(EffectiveIsa(features, ""), Int8Isa::kAvx512);
  features.avx512 = {};
  EXPECT_EQ(EffectiveIsa(features, ""), Int8Isa::kAvx2Vnni);
  features.avx_vnni = {};
  EXPECT_EQ(EffectiveIsa(features, ""), Int8Isa::kAvx2);
}

TEST(EffectiveIsa, IsLimitedByTheCap) {
  EXPECT_EQ(EffectiveIsa(Everything(), "AVX512_CORE_VNNI"), Int8Isa::kVnni);
  EXPECT_EQ(EffectiveIsa(Everything(), "avx512_core"), Int8Isa::kAvx512);
  EXPECT_EQ(EffectiveIsa(Everything(), "AVX2_VNNI"), Int8Isa::kAvx2Vnni);
  EXPECT_EQ(EffectiveIsa(Everything(), "AVX2"), Int8Isa::kAvx2);
}

TEST(EffectiveIsa, DoesNotTakeWhatTheCapAllowsAndTheCpuLacks) {
  CpuFeatures features;
  features.avx2 = Working();
  EXPECT_EQ(EffectiveIsa(features, "AVX512_CORE_VNNI"), Int8Isa::kAvx2);
}

// Returns graphs with these rates in the order of SpeedEntry, on a machine
// whose speed is multiplied by `drift` after each round.
BenchmarkResult Rounds(const std::vector<double>& rates, double drift) {
  BenchmarkResult result;
  for (const double rate : rates) {
    EntryMeasurement& entry = *result.add_entry();
    double speed = rate;
    for (int round = 0; round < 6; ++round, speed *= drift) {
      RoundMeasurement& measured = *entry.add_round();
      measured.set_records(1000);
      measured.set_records_per_second(speed);
      measured.set_cpu_seconds(1000 / speed);
    }
    entry.mutable_profile()->set_operation_microseconds(1e6 / rate);
  }
  return result;
}

Int8Figures Figures(const std::vector<double>& rates) {
  Int8Figures figures;
  figures.isa = Int8Isa::kAvx2;
  figures.peer.emplace();
  figures.speed.push_back({"1 x 2", Rounds(rates, 1)});
  figures.one_core = Rounds(rates, 1);
  return figures;
}

TEST(SpeedRatio, IsThatOfTheSameRounds) {
  const PairedRatio ratio = SpeedRatio(Rounds({100, 300, 200}, 2), 1, 2);
  EXPECT_DOUBLE_EQ(ratio.median, 1.5);
  ASSERT_TRUE(ratio.interval.has_value());
  EXPECT_DOUBLE_EQ(ratio.interval->low(), 1.5);
}

TEST(FiguresText, SetsOursBesideThePeerAndTheTarget) {
  const std::string text = FiguresText(Figures({100, 110, 200, 250, 160, 320}));
  EXPECT_THAT(text, ContainsRegex("speed / fp32, 1 x 2 .* 1.60 .* 2.00 .* "
                                  ">= 1.90 .* met"));
  EXPECT_THAT(text, ContainsRegex("speed / peer, 1 x 2 .* 1.00 .* 1.25 .* "
                                  ">= 1.15 .* met"));
  EXPECT_THAT(text, ContainsRegex("share of its own chain, 1 x 2 .* 0.50 .* "
                                  "0.80 .* >= 0.75 .* met"));
  EXPECT_THAT(text, ContainsRegex("share of the peer's chain, 1 x 2 .* 0.50 .* "
                                  "0.6[23] .* >= 0.75 .* MISSED"));
}

TEST(FiguresText, CallsASpeedUnclearWhoseIntervalHoldsTheTarget) {
  Int8Figures figures = Figures({100, 110, 190, 250, 160, 320});
  EntryMeasurement& ours = *figures.speed[0].result.mutable_entry(kOurs);
  ours.mutable_round(0)->set_records_per_second(150);
  ours.mutable_round(1)->set_records_per_second(230);
  EXPECT_THAT(FiguresText(figures),
              ContainsRegex("speed / fp32, 1 x 2 [^\n]* unclear\n"));
}

TEST(FiguresText, LeavesOutThePeerThatIsNotThere) {
  Int8Figures figures = Figures({100, 110, 200, 250});
  figures.peer.reset();
  EXPECT_THAT(FiguresText(figures), Not(HasSubstr("speed / peer")));
}

TEST(FiguresText, WarnsOfABusyMachine) {
  Int8Figures figures = Figures({100, 110, 200, 250, 160, 320});
  EXPECT_THAT(FiguresText(figures), Not(HasSubstr("warning")));
  for (EntryMeasurement& entry : *figures.speed[0].result.mutable_entry()) {
    for (RoundMeasurement& round : *entry.mutable_round()) {
      round.set_waited_seconds(round.cpu_seconds());
    }
  }
  EXPECT_THAT(FiguresText(figures), HasSubstr("waited for a core"));
}

}  // namespace
}  // namespace requant::int8_figures_test
