#include "runtime/calibration/calibration_key.h"

#include <chrono>
#include <future>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files/sha256.h"
#include "base/program/isolation.h"
#include "base/status_macros.h"
#include "base/version.h"
#include "graph/graph_io.h"
#include "runtime/datasets/formats/source_format.h"

namespace requant {
namespace {

absl::StatusOr<std::string> HashOf(const CalibrateJob& job) {
  CalibrateJob settings = job;
  settings.mutable_model()->clear_path();
  settings.clear_session();
  // How often the graph runs for a batch changes nothing.
  settings.mutable_qdq()->clear_held_bytes();
  if (!job.has_qdq()) settings.clear_qdq();
  ClearFiles(settings.mutable_dataset());
  ContentHash hash;
  hash.Add(VersionLine());
  hash.Add(DeterministicBytes(settings));
  const std::string directory = SavedModelDirectory(job.model().path());
  REQUANT_RETURN_IF_ERROR(
      hash.AddFile(directory.empty() ? job.model().path() : directory));
  for (const std::string& file : FilesOf(job.dataset())) {
    REQUANT_RETURN_IF_ERROR(hash.AddFile(file));
  }
  return hash.Finish();
}

}  // namespace

absl::StatusOr<std::string> CalibrationKey(const CalibrateJob& job) {
  auto key = std::async(std::launch::async, [&job] { return HashOf(job); });
  while (key.wait_for(std::chrono::milliseconds(200)) !=
         std::future_status::ready) {
    ReportAlive();
  }
  return key.get();
}

}  // namespace requant
