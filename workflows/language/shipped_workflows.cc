#include "workflows/language/shipped_workflows.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/files/file.h"
#include "base/message/text_proto.h"
#include "base/process/subprocess.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
#include "base/text/printable.h"
#include "workflows/workflow.pb.h"

namespace requant {
namespace {

namespace fs = std::filesystem;

constexpr char kEnding[] = ".textproto";

bool IsFile(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// Returns whether the folder has the default workflow, as the shipped one has.
bool IsShippedFolder(const std::string& folder) {
  return IsFile(absl::StrCat(folder, "/", kDefaultWorkflow, kEnding));
}

std::string Below(const std::string& folder) {
  return folder == "." ? "workflows" : absl::StrCat(folder, "/workflows");
}

// Returns the bare names of the workflows in a folder, in order.
std::vector<std::string> WorkflowsIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; entry != end;
       entry.increment(error)) {
    if (error) break;
    if (entry->path().extension() == kEnding) {
      names.push_back(entry->path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

WorkflowPlaces WorkflowPlaces::OfThisProcess() {
  WorkflowPlaces places;
  const char* const home = std::getenv("REQUANT_HOME");
  if (home != nullptr) places.home = home;
  if (const auto program = OwnPath(); program.ok()) places.program = *program;
  return places;
}

absl::StatusOr<std::string> ShippedWorkflowsFolder(
    const WorkflowPlaces& places) {
  std::vector<std::string> folders;
  if (!places.home.empty()) folders.push_back(Below(places.home));
  folders.push_back(Below(places.current));
  for (fs::path folder = fs::path(places.program).parent_path();
       folder.has_relative_path(); folder = folder.parent_path()) {
    folders.push_back(Below(folder.string()));
  }
  for (const std::string& folder : folders) {
    if (IsShippedFolder(folder)) return folder;
  }
  return absl::NotFoundError(absl::StrCat(
      "the workflows that come with Requant are not found: there is no "
      "workflows/",
      kDefaultWorkflow, kEnding,
      " in the current folder or above the program; set REQUANT_HOME to the "
      "folder that has workflows/ in it, or name a file"));
}

std::string ShippedWorkflowsText(const WorkflowPlaces& places) {
  constexpr int64_t kMaxBytes = 1 << 20;
  const absl::StatusOr<std::string> folder = ShippedWorkflowsFolder(places);
  if (!folder.ok()) return "";
  std::string text;
  for (const std::string& name : WorkflowsIn(*folder)) {
    const std::string path = absl::StrCat(*folder, "/", name, kEnding);
    if (!IsFile(path)) continue;
    const absl::StatusOr<std::string> content = ReadFile(path, kMaxBytes);
    // What is wrong with a file is said when it is run.
    Workflow workflow;
    if (content.ok()) {
      TextProtoOptions options;
      options.passes_unknown_fields = true;
      ParseTextProto(
          *content, options, [](int, int, std::string_view) {}, &workflow);
    }
    absl::StrAppendFormat(&text, "  %-18s  %s\n", Printable(name),
                          Printable(workflow.summary()));
  }
  return text;
}

absl::StatusOr<std::string> FindWorkflow(const std::string& name,
                                         const WorkflowPlaces& places) {
  if (absl::StrContains(name, '/') || absl::EndsWith(name, kEnding) ||
      (!name.empty() && IsFile(absl::StrCat(places.current, "/", name)))) {
    return name;
  }
  REQUANT_ASSIGN_OR_RETURN(const std::string folder,
                           ShippedWorkflowsFolder(places));
  const std::string wanted = name.empty() ? kDefaultWorkflow : name;
  const std::string path = absl::StrCat(folder, "/", wanted, kEnding);
  if (IsFile(path)) return path;
  const std::vector<std::string> names = WorkflowsIn(folder);
  return absl::NotFoundError(absl::StrCat(
      "no workflow is named \"", wanted, "\"", DidYouMean(wanted, names),
      "; there are ", absl::StrJoin(names, ", "), ", or name a file"));
}

}  // namespace requant
