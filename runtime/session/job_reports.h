#ifndef REQUANT_RUNTIME_SESSION_JOB_REPORTS_H_
#define REQUANT_RUNTIME_SESSION_JOB_REPORTS_H_

// What every job that runs a graph on records says to the user.

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "runtime/datasets/batch_source.h"

namespace requant {

// Prints a warning; the job goes on.
void SayWarning(std::string_view text);

// Warns of records that cannot be read: names the first ten, then says how many
// there are.
class BadRecordWarnings {
 public:
  // Sends those that the source skips here; this object must outlive it.
  void Watch(BatchOptions* options);
  // Must be called after the last record.
  void Finish() const;

 private:
  int64_t count_ = 0;
};

// Returns "records 16 to 31".
std::string RecordsText(const Batch& batch);

// Returns an error of running the graph at `path` with the name of the graph
// and what it did, such as RecordsText; OK stays OK.
absl::Status RunError(const absl::Status& status, const std::string& path,
                      std::string_view what);

}  // namespace requant

#endif  // REQUANT_RUNTIME_SESSION_JOB_REPORTS_H_
