#include "runtime/evaluation/layer_table.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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

std::string LayerRow(size_t name_width, const ComparedLayer& layer) {
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

}  // namespace

std::string LayersText(const EvaluateResult& result) {
  std::string text;
  if (result.layer_size() > 0) {
    std::vector<ComparedLayer> sorted(result.layer().begin(),
                                      result.layer().end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const ComparedLayer& a, const ComparedLayer& b) {
                       return a.signal_to_noise() < b.signal_to_noise();
                     });
    size_t name_width = 0;
    for (const ComparedLayer& layer : sorted) {
      name_width = std::max(name_width, Printable(layer.name()).size());
    }
    absl::StrAppend(&text, "layers on ", sorted[0].records(),
                    " records, the noisiest first:\n",
                    Row(name_width, "layer", "kind", "step", "error/step",
                        "shift/step", "SNR dB", "clipped"));
    for (const ComparedLayer& layer : sorted) {
      absl::StrAppend(&text, LayerRow(name_width, layer));
    }
  }
  for (const std::string& name : result.unmatched_layer()) {
    absl::StrAppend(&text, "  ", Printable(name),
                    " has no counterpart in the graph\n");
  }
  return text;
}

}  // namespace requant
