#ifndef REQUANT_RUNTIME_SESSION_WORKER_EVENTS_H_
#define REQUANT_RUNTIME_SESSION_WORKER_EVENTS_H_

// What the jobs of a worker tell while they run.

#include <functional>
#include <string>
#include <string_view>

#include "runtime/session/worker.pb.h"

namespace requant {

using EventSink = std::function<void(const WorkerEvent&)>;

void SendActivity(const EventSink& send, const std::string& activity);
void SendWarning(const EventSink& send, const std::string& warning);
void SendNote(const EventSink& send, const std::string& note);

// A file's content as file parts, or as ranges parts.
void SendFile(const EventSink& send, std::string_view content);
void SendRanges(const EventSink& send, std::string_view content);

}  // namespace requant

#endif  // REQUANT_RUNTIME_SESSION_WORKER_EVENTS_H_
