#include "workflows/testing/example_runs.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"
#include "workflows/run/run_record.pb.h"
#include "workflows/testing/example_run_files.h"

namespace requant {
namespace {

template <typename Record>
Record ParseRecord(std::string_view text) {
  Record record;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(std::string(text),
                                                            &record));
  return record;
}

StageRecord* FindStage(const std::string& name, RunRecord* record) {
  for (StageRecord& stage : *record->mutable_stage()) {
    if (stage.name() == name) return &stage;
  }
  return nullptr;
}

// Makes it a run in which nothing after stage `name` ran.
void StopAfter(const std::string& name, RunRecord* record) {
  bool behind = false;
  for (StageRecord& stage : *record->mutable_stage()) {
    if (behind) {
      StageRecord kept;
      kept.set_name(stage.name());
      kept.set_summary(stage.summary());
      kept.set_kind(stage.kind());
      kept.mutable_work()->set_message(
          absl::StrCat("\"", name, "\" did not succeed"));
      stage = kept;
    }
    behind = behind || stage.name() == name;
  }
}

}  // namespace

void AppendToEveryText(std::string_view text,
                       google::protobuf::Message* message) {
  using Field = google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  std::vector<const Field*> fields;
  reflection.ListFields(*message, &fields);
  for (const Field* field : fields) {
    const int size =
        field->is_repeated() ? reflection.FieldSize(*message, field) : 1;
    for (int i = 0; i < size; ++i) {
      if (field->cpp_type() == Field::CPPTYPE_MESSAGE) {
        AppendToEveryText(
            text, field->is_repeated()
                      ? reflection.MutableRepeatedMessage(message, field, i)
                      : reflection.MutableMessage(message, field));
      } else if (field->cpp_type() != Field::CPPTYPE_STRING) {
        continue;
      } else if (field->is_repeated()) {
        reflection.SetRepeatedString(
            message, field, i,
            absl::StrCat(reflection.GetRepeatedString(*message, field, i),
                         text));
      } else {
        reflection.SetString(
            message, field,
            absl::StrCat(reflection.GetString(*message, field), text));
      }
    }
  }
}

RunRecord PassedRun() { return ParseRecord<RunRecord>(kPassedRun); }

RunRecord RefusedRun() {
  RunRecord record = PassedRun();
  record.set_outcome(RunRecord::GATE_FAILED);
  *FindStage("fuse", &record) = ParseRecord<StageRecord>(kRefusedStage);
  StopAfter("fuse", &record);
  return record;
}

RunRecord InterruptedRun() {
  RunRecord record = PassedRun();
  record.set_outcome(RunRecord::INTERRUPTED);
  VerificationRecord* verification =
      FindStage("freeze_min", &record)->mutable_verification();
  verification->mutable_work()->set_state(TaskRecord::INTERRUPTED);
  verification->mutable_work()->set_message("interrupted by SIGINT");
  verification->mutable_work()->set_seconds(0.7);
  verification->clear_result();
  verification->clear_gate();
  verification->set_verdict(VerificationRecord::NONE);
  StopAfter("freeze_min", &record);
  record.set_seconds(verification->work().start() + 0.7);
  return record;
}

RunRecord OneStageRun() { return ParseRecord<RunRecord>(kOneStageRun); }

}  // namespace requant
