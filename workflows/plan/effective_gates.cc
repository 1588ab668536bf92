#include "workflows/plan/effective_gates.h"

#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "workflows/language/stage_parts.h"

namespace requant {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;

// Of accuracy, in percentage points, as the published recipe has it.
constexpr double kDefaultMaxAccuracyDrop = 0.5;

const TaskInput* FindInput(const Task& task, std::string_view role) {
  for (const TaskInput& input : task.inputs) {
    if (input.role == role) return &input;
  }
  return nullptr;
}

// The first gate on layers that is set; "": none is.
std::string LayerGate(const Gates& gates) {
  const Reflection* const reflection = gates.GetReflection();
  for (int i = 0; i < Gates::descriptor()->field_count(); ++i) {
    const FieldDescriptor* const field = Gates::descriptor()->field(i);
    if (absl::StrContains(field->name(), "_layer_") &&
        reflection->HasField(gates, field) &&
        reflection->GetDouble(gates, field) >= 0) {
      return std::string(field->name());
    }
  }
  return "";
}

// Messages of gates, the narrowest first.
std::vector<const Gates*> GatesOf(const Plan& plan, const Task& task) {
  const Workflow& workflow = plan.file.workflow;
  std::vector<const Gates*> places;
  const Stage& stage = workflow.stage(task.stage);
  if (stage.has_compare()) {
    places.push_back(&stage.compare().gates());
  } else if (const Verify* verify = VerifyOf(stage)) {
    places.push_back(&verify->gates());
  }
  if (task.evaluation >= 0) {
    places.push_back(&workflow.evaluation(task.evaluation).gates());
  }
  places.push_back(&workflow.gates());
  return places;
}

}  // namespace

Gates EffectiveGates(const Plan& plan, const Task& task) {
  Gates effective;
  if (task.kind != Task::Kind::kVerify ||
      (FindInput(task, "baseline_predictions") == nullptr &&
       FindInput(task, "baseline") == nullptr)) {
    return effective;
  }
  effective.set_max_accuracy_drop(kDefaultMaxAccuracyDrop);
  const Reflection* const reflection = effective.GetReflection();
  for (int i = 0; i < Gates::descriptor()->field_count(); ++i) {
    const FieldDescriptor* const field = Gates::descriptor()->field(i);
    for (const Gates* gates : GatesOf(plan, task)) {
      if (!reflection->HasField(*gates, field)) continue;
      const double limit = reflection->GetDouble(*gates, field);
      if (limit < 0) {
        reflection->ClearField(&effective, field);
      } else {
        reflection->SetDouble(&effective, field, limit);
      }
      break;
    }
  }
  return effective;
}

bool LimitsAccuracyDrop(const Plan& plan, const Task& task) {
  for (const Gates* gates : GatesOf(plan, task)) {
    if (gates->has_max_accuracy_drop()) return true;
  }
  return false;
}

std::string UselessLayerGate(const Plan& plan, const Task& task) {
  if (task.kind != Task::Kind::kVerify) return "";
  const std::string gate = LayerGate(EffectiveGates(plan, task));
  if (gate.empty()) return "";
  const Stage& stage = plan.file.workflow.stage(task.stage);
  const bool compared = stage.has_compare()
                            ? !stage.compare().layer_records().empty()
                            : FindInput(task, "baseline") != nullptr;
  return compared ? "" : gate;
}

}  // namespace requant
