#ifndef REQUANT_WORKFLOWS_DISPLAY_PLAIN_DISPLAY_H_
#define REQUANT_WORKFLOWS_DISPLAY_PLAIN_DISPLAY_H_

// The display of a run where no line can be rewritten; made by run_display.h.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/terminal/progress.h"
#include "workflows/display/run_display.h"
#include "workflows/display/task_clock.h"
#include "workflows/run/run_observer.h"
#include "workflows/run/run_record.pb.h"

namespace requant {

class PlainDisplay : public RunDisplay {
 public:
  explicit PlainDisplay(ProgressEnvironment environment)
      : environment_(std::move(environment)) {}

  void RunStarted(const RunRecord& record) override;
  void TaskStarted(const RunRecord& record, const TaskPlace& place) override;
  void TaskProgressed(const RunRecord& record, const TaskPlace& place,
                      const TaskProgress& progress) override;
  void TaskEnded(const RunRecord& record, const TaskPlace& place) override;
  void Said(std::string_view line) override;
  void RunEnded(const RunRecord& record) override;
  void Tick() override;

 private:
  struct Running {
    // As in the plan: "optimize/verify".
    std::string name;
    TaskClock clock;
    double last_line = 0;
  };

  void Write(std::string_view text);

  const ProgressEnvironment environment_;
  std::vector<Running> running_;
};

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_DISPLAY_PLAIN_DISPLAY_H_
