#ifndef REQUANT_TESTS_DEFECTS_DEFECT_H_
#define REQUANT_TESTS_DEFECTS_DEFECT_H_

// Defects to be planted in what a workflow's stages make, to prove that the
// gates catch them. Each is a mistake that a tool of this kind had or could
// have.

#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph_index.h"
#include "ranges/range_table.h"

namespace requant {

// What an edit did, as a sentence without a full stop.
using Edited = absl::StatusOr<std::string>;
using GraphEdit = std::function<Edited(GraphIndex*)>;
using LogEdit = std::function<Edited(std::string* text)>;
using RangesEdit = std::function<Edited(RangeTable*)>;

namespace gate {
// None: the stage, or the run of its graph, ends with an error.
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

// Stages of workflows/wide_deep.textproto, then those that
// wide_deep_fast.textproto has of its own.
namespace stage {
inline constexpr char kFreeze[] = "freeze";
inline constexpr char kTrim[] = "trim";
inline constexpr char kOptimize[] = "optimize";
inline constexpr char kQuantize[] = "quantize";
inline constexpr char kLogRanges[] = "log_ranges";
inline constexpr char kFreezeRanges[] = "freeze_ranges";
inline constexpr char kLogMin[] = "log_min";
inline constexpr char kFreezeMin[] = "freeze_min";
inline constexpr char kLogMax[] = "log_max";
inline constexpr char kFreezeMax[] = "freeze_max";
inline constexpr char kFuse[] = "fuse";
inline constexpr char kCalibrate[] = "calibrate";
}  // namespace stage

struct Defect {
  std::string_view name;
  // Whose mistake it is, or could be.
  std::string_view sentence;
  enum class Workflow { kPublished, kFast };
  Workflow workflow;
  // The stage whose output is edited.
  std::string_view planted_in;
  // The stage that must stop the run.
  std::string_view stopped_at;
  // The gate that sees it best and must be among those that fail; "": the stage
  // itself, or the run of its graph, fails with a sentence.
  std::string_view gate;
  std::variant<GraphEdit, LogEdit, RangesEdit> edit;
  // Whether it is seen only where int16 pair sums saturate: on CPUs without
  // VNNI, or when oneDNN is kept from using it.
  bool needs_saturation = false;
};

// Return the defects by stage.
std::vector<Defect> FloatDefects();
std::vector<Defect> QuantizeDefects();
std::vector<Defect> RangeDefects();
std::vector<Defect> LogDefects();
std::vector<Defect> FuseDefects();
std::vector<Defect> FastDefects();
// Returns all of these.
std::vector<Defect> AllDefects();

// Plants the defect in the one of `files` that its edit is for. A log's edit is
// also made in the RangeTable of the log, if that is among them.
absl::StatusOr<std::string> Plant(const Defect& defect,
                                  const std::vector<std::string>& files);

}  // namespace requant

#endif  // REQUANT_TESTS_DEFECTS_DEFECT_H_
