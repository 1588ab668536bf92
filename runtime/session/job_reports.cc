#include "runtime/session/job_reports.h"

#include "absl/strings/str_cat.h"
#include "base/program/flags.h"

namespace requant {
namespace {

// If there are more, only their number is reported.
constexpr int64_t kNamedBadRecords = 10;

}  // namespace

void SayWarning(std::string_view text) {
  Say(ProgramName(), absl::StrCat("warning: ", text));
}

void BadRecordWarnings::Watch(BatchOptions* options) {
  options->on_bad_record = [this](const std::string& message) {
    if (count_++ < kNamedBadRecords) SayWarning(message);
  };
}

void BadRecordWarnings::Finish() const {
  if (count_ <= kNamedBadRecords) return;
  SayWarning(absl::StrCat(count_, " bad records in all, of which the first ",
                          kNamedBadRecords, " are named above"));
}

std::string RecordsText(const Batch& batch) {
  return absl::StrCat("records ", batch.first_record, " to ",
                      batch.first_record + batch.size - 1);
}

absl::Status RunError(const absl::Status& status, const std::string& path,
                      std::string_view what) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(path, ": ", what, ": ", status.message()));
}

}  // namespace requant
