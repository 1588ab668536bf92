#include "workflows/testing/example_runs.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "google/protobuf/text_format.h"
#include "re2/re2.h"
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

// Makes the record one of a run in which nothing after stage `name` ran.
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

void AppendToEveryText(std::string_view text, RunRecord* record) {
  std::string printed;
  google::protobuf::TextFormat::PrintToString(*record, &printed);
  const std::string appended =
      absl::StrReplaceAll(absl::CEscape(text), {{"\\", "\\\\"}});
  RE2::GlobalReplace(&printed, R"re("((?:[^"\\]|\\.)*)")re",
                     absl::StrCat("\"\\1", appended, "\""));
  *record = ParseRecord<RunRecord>(printed);
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
  verification->Clear();
  verification->mutable_work()->set_state(TaskRecord::INTERRUPTED);
  StopAfter("freeze_min", &record);
  return record;
}

RunRecord OneStageRun() { return ParseRecord<RunRecord>(kOneStageRun); }

}  // namespace requant
