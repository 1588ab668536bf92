#include "runtime/calibration/calibration_key.h"

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files/content_hash.h"
#include "base/status_macros.h"
#include "base/version.h"
#include "graph/graph_io.h"
#include "runtime/datasets/dataset.pb.h"

namespace requant {
namespace {

// Takes the dataset's paths out of its declaration, in a fixed order.
std::vector<std::string> TakeFiles(DatasetSpec* dataset) {
  std::vector<std::string> paths;
  const auto take = [&](auto* files) {
    paths.assign(files->begin(), files->end());
    files->Clear();
  };
  switch (dataset->source_case()) {
    case DatasetSpec::kTfrecord:
      take(dataset->mutable_tfrecord()->mutable_files());
      break;
    case DatasetSpec::kCsv:
      take(dataset->mutable_csv()->mutable_files());
      break;
    case DatasetSpec::kInGraph:
      take(dataset->mutable_in_graph()->mutable_files());
      break;
    case DatasetSpec::kNumpy: {
      NumpySource& numpy = *dataset->mutable_numpy();
      take(numpy.mutable_files());
      std::map<std::string, std::string> arrays(numpy.arrays().begin(),
                                                numpy.arrays().end());
      for (const auto& [feature, path] : arrays) {
        paths.push_back(path);
        (*numpy.mutable_arrays())[feature].clear();
      }
      break;
    }
    case DatasetSpec::SOURCE_NOT_SET:
      break;
  }
  return paths;
}

}  // namespace

absl::StatusOr<std::string> CalibrationKey(const CalibrateJob& job) {
  CalibrateJob settings = job;
  settings.mutable_model()->clear_path();
  settings.clear_session();
  // How often the graph runs for a batch changes nothing.
  settings.mutable_qdq()->clear_held_bytes();
  if (!job.has_qdq()) settings.clear_qdq();
  const std::vector<std::string> files = TakeFiles(settings.mutable_dataset());
  ContentHash hash;
  hash.Add(VersionLine());
  hash.Add(DeterministicBytes(settings));
  const std::string directory = SavedModelDirectory(job.model().path());
  REQUANT_RETURN_IF_ERROR(
      hash.AddFile(directory.empty() ? job.model().path() : directory));
  for (const std::string& file : files) {
    REQUANT_RETURN_IF_ERROR(hash.AddFile(file));
  }
  return hash.Finish();
}

std::vector<std::string> DataFiles(const DatasetSpec& dataset) {
  DatasetSpec rest = dataset;
  return TakeFiles(&rest);
}

}  // namespace requant
