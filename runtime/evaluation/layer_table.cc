#include "runtime/evaluation/layer_table.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/json.h"
#include "base/text/printable.h"

namespace requant {
namespace {

std::string InSteps(double value, double step) {
  // A step of 0 is that of a layer that is always the same.
  return step > 0 ? absl::StrFormat("%.3f", value / step) : "-";
}

std::string Row(size_t name_width, const std::string& name,
                const std::string& kind, const std::string& step,
                const std::string& error, const std::string& shift,
                const std::string& noise, const std::string& clipped) {
  return absl::StrFormat("  %-*s  %-5s  %9s  %11s  %11s  %6s  %9s\n",
                         static_cast<int>(name_width), name, kind, step, error,
                         shift, noise, clipped);
}

std::string LayerRow(size_t name_width, const LayerMessage& layer) {
  return Row(name_width, Printable(layer.name()),
             layer.quantized() ? "8 bit" : "float",
             absl::StrFormat("%.3g", layer.step()),
             InSteps(layer.rms_error(), layer.step()),
             InSteps(layer.worst_channel_shift(), layer.step()),
             absl::StrFormat("%.1f", layer.signal_to_noise()),
             layer.quantized()
                 ? absl::StrFormat("%.3f %%", 100 * layer.clipped_share())
                 : "-");
}

std::string IntervalJson(const IntervalMessage& interval) {
  return absl::StrCat("[", JsonNumber(interval.low()), ", ",
                      JsonNumber(interval.high()), "]");
}

std::string LayerJson(const LayerMessage& layer) {
  return JsonObject({
      {"name", JsonString(layer.name())},
      {"baseline_tensor", JsonString(layer.baseline_tensor())},
      {"tensor", JsonString(layer.tensor())},
      {"quantized", layer.quantized() ? "true" : "false"},
      {"records", absl::StrCat(layer.records())},
      {"step", JsonNumber(layer.step())},
      {"range", layer.has_range() ? IntervalJson(layer.range()) : "null"},
      {"observed", IntervalJson(layer.observed())},
      {"clipped_share", JsonNumber(layer.clipped_share())},
      {"clipped_records", JsonNumber(layer.clipped_records())},
      {"gain", JsonNumber(layer.gain())},
      {"rms_error", JsonNumber(layer.rms_error())},
      {"rms_signal", JsonNumber(layer.rms_signal())},
      {"max_error", JsonNumber(layer.max_error())},
      {"signal_to_noise_db", JsonNumber(layer.signal_to_noise())},
      {"worst_channel", absl::StrCat(layer.worst_channel())},
      {"worst_channel_shift", JsonNumber(layer.worst_channel_shift())},
  });
}

}  // namespace

std::string LayersText(const std::vector<LayerMessage>& layers,
                       const std::vector<std::string>& unmatched) {
  std::string text;
  if (!layers.empty()) {
    std::vector<LayerMessage> sorted = layers;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const LayerMessage& a, const LayerMessage& b) {
                       return a.signal_to_noise() < b.signal_to_noise();
                     });
    size_t name_width = 0;
    for (const LayerMessage& layer : layers) {
      name_width = std::max(name_width, Printable(layer.name()).size());
    }
    absl::StrAppend(&text, "layers on ", sorted[0].records(),
                    " records, the noisiest first:\n",
                    Row(name_width, "layer", "kind", "step", "error/step",
                        "shift/step", "SNR dB", "clipped"));
    for (const LayerMessage& layer : sorted) {
      absl::StrAppend(&text, LayerRow(name_width, layer));
    }
  }
  for (const std::string& name : unmatched) {
    absl::StrAppend(&text, "  ", Printable(name),
                    " has no counterpart in the graph\n");
  }
  return text;
}

std::string LayersJson(const std::vector<LayerMessage>& layers) {
  std::vector<std::string> values;
  for (const LayerMessage& layer : layers) values.push_back(LayerJson(layer));
  return JsonArray(values);
}

}  // namespace requant
