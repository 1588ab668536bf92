#ifndef REQUANT_TESTS_DEFECTS_DEFECT_H_
#define REQUANT_TESTS_DEFECTS_DEFECT_H_

// Defects to plant in the results of a workflow's stages, to prove that the
// gates catch them. Each is a mistake that such a tool made or could make.

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph_index.h"
#include "ranges/range_table.h"

namespace requant {

// A description of an edit, as a sentence without a period.
using Edited = absl::StatusOr<std::string>;
using GraphEdit = std::function<Edited(GraphIndex*)>;
using LogEdit = std::function<Edited(std::string* text)>;
using RangesEdit = std::function<Edited(RangeTable*)>;

namespace gate {
// No gate fails, because the stage or the run of its graph ends with an error.
inline constexpr char kRefused[] = "";
inline constexpr char kMeanChange[] = "max_mean_output_change";
inline constexpr char kLargestChange[] = "max_output_change";
inline constexpr char kError[] = "max_layer_error";
inline constexpr char kShift[] = "max_layer_shift";
inline constexpr char kNoise[] = "min_layer_snr";
inline constexpr char kClipped[] = "max_layer_clipped_records";
inline constexpr char kGain[] = "max_layer_gain_error";
inline constexpr char kExcess[] = "max_layer_range_excess";
}  // namespace gate

struct Defect {
  std::string_view name;
  // A sentence on who made or could make this mistake.
  std::string_view sentence;
  // The stage of the workflow whose output is edited.
  std::string_view planted_in;
  // The stage that must stop the run.
  std::string_view stopped_at;
  // The gate that detects it best and must be among those that fail; "" if the
  // stage itself, or the run of its graph, must fail with a sentence.
  std::string_view gate;
  std::variant<GraphEdit, LogEdit, RangesEdit> edit;
  enum class Workflow { kPublished, kFast };
  Workflow workflow = Workflow::kPublished;
  // Whether it is detected only if int16 pair sums saturate: on CPUs without
  // VNNI, or if oneDNN is kept from using VNNI.
  bool needs_saturation = false;
};

// Return a row of the lists below. Without `stopped_at`, the stage's own gates
// must detect the defect.
template <typename Edit>
Defect At(std::string_view planted_in, std::string_view stopped_at,
          std::string_view gate, std::string_view name,
          std::string_view sentence, Edit edit) {
  return {name, sentence, planted_in, stopped_at, gate, std::move(edit)};
}
template <typename Edit>
Defect At(std::string_view stage, std::string_view gate, std::string_view name,
          std::string_view sentence, Edit edit) {
  return At(stage, stage, gate, name, sentence, std::move(edit));
}

// Return the defects by stage.
std::vector<Defect> FloatDefects();
std::vector<Defect> QuantizeDefects();
std::vector<Defect> RangeDefects();
std::vector<Defect> FuseDefects();
std::vector<Defect> FastDefects();
// Returns the defects of all stages.
std::vector<Defect> AllDefects();

// Plants the defect in the file among `files` that its edit applies to. A log's
// edit is also applied to the RangeTable of the log, if `files` has it.
absl::StatusOr<std::string> Plant(const Defect& defect,
                                  const std::vector<std::string>& files);

}  // namespace requant

#endif  // REQUANT_TESTS_DEFECTS_DEFECT_H_
