#include "runtime/session/worker_events.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace requant {
namespace {

// In base64 well below the longest line that a parent reads.
constexpr size_t kPartBytes = 1 << 18;

}  // namespace

void SendActivity(const EventSink& send, const std::string& activity) {
  WorkerEvent event;
  event.set_activity(activity);
  send(event);
}

void SendWarning(const EventSink& send, const std::string& warning) {
  WorkerEvent event;
  event.set_warning(warning);
  send(event);
}

void SendNote(const EventSink& send, const std::string& note) {
  WorkerEvent event;
  event.set_note(note);
  send(event);
}

void SendFile(const EventSink& send, std::string_view content) {
  for (size_t start = 0; start < content.size(); start += kPartBytes) {
    WorkerEvent event;
    event.set_file_part(std::string(content.substr(start, kPartBytes)));
    send(event);
  }
}

void SendRanges(const EventSink& send, std::string_view content) {
  for (size_t start = 0; start < content.size(); start += kPartBytes) {
    WorkerEvent event;
    event.set_ranges_part(std::string(content.substr(start, kPartBytes)));
    send(event);
  }
}

}  // namespace requant
