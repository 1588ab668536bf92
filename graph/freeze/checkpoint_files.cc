#include "graph/freeze/checkpoint_files.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "tensorflow/core/platform/env.h"

namespace requant {

std::vector<std::string> CheckpointFiles(const std::string& prefix) {
  const size_t slash = prefix.rfind('/');
  const std::string folder =
      slash == std::string::npos ? "" : prefix.substr(0, slash + 1);
  const std::string base = prefix.substr(folder.size());
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator
           entry(folder.empty() ? "." : folder, error),
       end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name == base + ".index" || name == base + ".meta" ||
        absl::StartsWith(name, base + ".data-")) {
      files.push_back(folder + name);
    }
  }
  std::vector<std::string> named;
  if (tensorflow::Env::Default()->GetMatchingPaths(prefix, &named).ok()) {
    for (const std::string& file : named) {
      if (!std::filesystem::is_directory(file, error)) files.push_back(file);
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

absl::Status CheckCheckpointFiles(const std::string& prefix) {
  for (const std::string& file : CheckpointFiles(prefix)) {
    REQUANT_RETURN_IF_ERROR(CheckRegular(file));
  }
  return absl::OkStatus();
}

}  // namespace requant
