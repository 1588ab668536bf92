#ifndef REQUANT_WORKFLOWS_REPORT_TENSORBOARD_EVENTS_H_
#define REQUANT_WORKFLOWS_REPORT_TENSORBOARD_EVENTS_H_

// A run as `tensorboard --logdir` shows it.

#include <string>

#include "workflows/run/run_record.pb.h"

namespace requant {

// "events.out.tfevents.<seconds since 1970>.requant".
std::string EventFileName(const RunRecord& record);

// The file's content: the stages' figures and the layers' signal to noise as
// scalars, a stage's step being its place in the workflow (from 0), and the run
// and the table of its stages as texts. Nothing but the record decides it.
std::string EventFile(const RunRecord& record);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_REPORT_TENSORBOARD_EVENTS_H_
