#include "runtime/evaluation/layer_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/message/message_json.h"

namespace requant::layer_table_test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

ComparedLayer Layer(const std::string& name, double signal_to_noise) {
  ComparedLayer layer;
  layer.set_name(name);
  layer.set_quantized(true);
  layer.set_records(8192);
  layer.set_step(0.5);
  layer.set_rms_error(0.25);
  layer.set_worst_channel_shift(-0.125);
  layer.set_signal_to_noise(signal_to_noise);
  layer.set_clipped_share(0.001);
  return layer;
}

EvaluateResult ResultOf(const std::vector<ComparedLayer>& layers) {
  EvaluateResult result;
  for (const ComparedLayer& layer : layers) *result.add_layer() = layer;
  return result;
}

std::vector<std::string> Lines(const std::string& text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

TEST(LayersText, HasTheNoisiestLayerFirst) {
  const std::vector<std::string> lines =
      Lines(LayersText(ResultOf({Layer("quiet", 40), Layer("loud", 12.34)})));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "layers on 8192 records, the noisiest first:");
  EXPECT_EQ(lines[1],
            "  layer  kind        step   error/step   shift/step  SNR dB    "
            "clipped");
  EXPECT_EQ(lines[2],
            "  loud   8 bit        0.5        0.500       -0.250    12.3    "
            "0.100 %");
  EXPECT_THAT(lines[3], StartsWith("  quiet"));
}

TEST(LayersText, ShowsNoStepsOfALayerThatIsAlwaysTheSame) {
  ComparedLayer layer = Layer("dead", std::numeric_limits<double>::infinity());
  layer.set_step(0);
  EXPECT_THAT(LayersText(ResultOf({layer})),
              HasSubstr("-            -     inf"));
}

TEST(LayersText, NamesLayersWithoutACounterpart) {
  EvaluateResult result;
  EXPECT_EQ(LayersText(result), "");
  result.add_unmatched_layer("gone");
  EXPECT_EQ(LayersText(result), "  gone has no counterpart in the graph\n");
}

TEST(ComparedLayer, HasAllFiguresInJson) {
  ComparedLayer layer = Layer("m", std::numeric_limits<double>::infinity());
  layer.mutable_range()->set_high(127.5);
  const std::string json = MessageJson(layer);
  EXPECT_THAT(json, StartsWith("{\"name\": \"m\""));
  EXPECT_THAT(json, HasSubstr("\"range\": [0, 127.5]"));
  EXPECT_THAT(json, HasSubstr("\"signal_to_noise_db\": null"));
  EXPECT_THAT(json, EndsWith("\"worst_channel_shift\": -0.125}"));
  EXPECT_THAT(MessageJson(Layer("n", 3)), HasSubstr("\"range\": null"));
}

}  // namespace
}  // namespace requant::layer_table_test
