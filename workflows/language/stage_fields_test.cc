#include "workflows/language/stage_fields.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"

namespace requant::stage_fields_test {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// Returns whether messages of this type have the field, or the oneof.
bool Has(const Descriptor* type, const std::string& path) {
  const std::vector<std::string> names =
      absl::StrSplit(path, '.', absl::SkipEmpty());
  for (const std::string& name : names) {
    if (type == nullptr) return false;
    const FieldDescriptor* const field = type->FindFieldByName(name);
    if (field == nullptr && type->FindOneofByName(name) == nullptr) {
      return false;
    }
    type = field == nullptr ? nullptr : field->message_type();
  }
  return true;
}

const Descriptor* TypeOf(const std::string& kind) {
  return Stage::descriptor()->FindFieldByName(kind)->message_type();
}

TEST(StageForms, AreThereForEveryKind) {
  std::set<std::string> kinds;
  for (const StageForm& form : Stages().form()) kinds.insert(form.kind());
  for (const std::string& kind : StageKinds()) {
    EXPECT_EQ(kinds.count(kind), 1u) << kind;
  }
  EXPECT_EQ(kinds.size(), StageKinds().size());
}

TEST(StageForms, NameFieldsAndProgramsThatExist) {
  for (const StageForm& form : Stages().form()) {
    EXPECT_TRUE(Has(TypeOf(form.kind()), form.when())) << form.when();
    for (const StageStep& step : form.step()) {
      EXPECT_NE(FindProgram(step.command()), nullptr) << step.command();
      for (const StageField& row : step.row()) {
        EXPECT_TRUE(Has(TypeOf(form.kind()), row.field()))
            << form.kind() << ": " << row.field();
      }
    }
  }
  for (const StageField& row : Stages().judging()) {
    EXPECT_TRUE(Has(CompareStage::descriptor(), row.field())) << row.field();
  }
}

// Only the field of a oneof that is set counts.
TEST(FindField, LeavesOutWhatTheStageDoesNotSet) {
  FreezeStage freeze;
  EXPECT_TRUE(FindField(freeze, "saved_model").has_value());
  EXPECT_FALSE(FindField(freeze, "graph.checkpoint").has_value());
  freeze.mutable_graph();
  EXPECT_FALSE(FindField(freeze, "saved_model").has_value());
  EXPECT_TRUE(FindField(freeze, "graph.checkpoint").has_value());
  EXPECT_TRUE(FindField(freeze, "from")->IsSet());
}

}  // namespace
}  // namespace requant::stage_fields_test
