#include "graph/saved_model/saved_model_folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "graph/freeze/checkpoint.h"
#include "graph/graph_io.h"

namespace requant {
namespace {

namespace fs = std::filesystem;

using tensorflow::GraphDef;
using tensorflow::NodeDef;

constexpr char kInnerFolder[] = "saved_model";

bool IsVersion(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isdigit(c);
  });
}

// Returns whether there is a SavedModel of any form, also one not read.
bool HasModel(const fs::path& folder) {
  std::error_code ignored;
  return IsSavedModelDirectory(folder.string()) ||
         fs::exists(folder / "saved_model.cpb", ignored);
}

// Returns the SavedModels in the folders of `folder` that are versions.
std::vector<std::string> Versions(const fs::path& folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (IsVersion(at->path().filename().string()) && HasModel(at->path())) {
      found.push_back(at->path().string());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

absl::Status NoModel(const std::string& path) {
  std::error_code error;
  const bool empty = fs::is_empty(path, error) && !error;
  return absl::NotFoundError(absl::StrCat(
      path, empty ? " is an empty folder" : " is not a SavedModel",
      ": there is no saved_model.pb in it, nor in a saved_model or a version "
      "(1, 2, …) below it"));
}

bool HasVariables(const GraphDef& graph) {
  return std::any_of(
      graph.node().begin(), graph.node().end(), [](const NodeDef& node) {
        return node.op() == "VarHandleOp" || node.op() == "VariableV2" ||
               node.op() == "Variable";
      });
}

}  // namespace

absl::StatusOr<std::string> FindSavedModel(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    return absl::NotFoundError(
        absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  }
  std::string directory = SavedModelDirectory(path);
  if (directory.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     " is not a SavedModel but a file; name the folder with "
                     "saved_model.pb"));
  }
  while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  if (HasModel(directory)) return directory;
  const fs::path inner = fs::path(directory) / kInnerFolder;
  if (HasModel(inner)) return inner.string();
  std::vector<std::string> found = Versions(directory);
  for (const std::string& version : Versions(inner)) found.push_back(version);
  if (found.size() == 1) return found[0];
  if (found.empty()) return NoModel(path);
  return absl::InvalidArgumentError(
      absl::StrCat(path, " has several SavedModels: name one of ",
                   absl::StrJoin(found, ", ")));
}

std::string SavedModelName(const std::string& directory) {
  std::error_code error;
  fs::path path = fs::absolute(directory, error).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  const std::string last = path.filename().string();
  if (IsVersion(path.filename().string())) path = path.parent_path();
  if (path.filename() == kInnerFolder) path = path.parent_path();
  return path.has_filename() ? path.filename().string() : last;
}

absl::Status CheckVariables(const std::string& directory,
                            const GraphDef& graph) {
  const std::string prefix = absl::StrCat(directory, "/variables/variables");
  struct stat info;
  if (stat((prefix + ".index").c_str(), &info) != 0) {
    if (!HasVariables(graph)) return absl::OkStatus();
    return absl::NotFoundError(absl::StrCat(
        directory, " has variables but not their values: ", prefix,
        ".index is missing; copy the whole folder \"variables\" too"));
  }
  REQUANT_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpoint> checkpoint,
                           Checkpoint::Open(prefix));
  return checkpoint->CheckData();
}

}  // namespace requant
