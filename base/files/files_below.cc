#include "base/files/files_below.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace requant {
namespace {

namespace fs = std::filesystem;

// Links that lead to one folder from many others multiply.
constexpr int kMostFolders = 20'000;

class Walk {
 public:
  Walk(const std::string& folder, OtherEntries others)
      : folder_(folder), others_(others) {}

  // Adds what is in the folder of that name below the first; "": the first.
  absl::Status Enter(const std::string& name) {
    const std::string path =
        name.empty() ? folder_ : absl::StrCat(folder_, "/", name);
    struct stat info;
    if (stat(path.c_str(), &info) != 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("reading ", path));
    }
    const std::pair<dev_t, ino_t> place = {info.st_dev, info.st_ino};
    if (std::find(above_.begin(), above_.end(), place) != above_.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, " is a link to a folder that it is in; remove the link"));
    }
    if (++folders_ > kMostFolders) {
      return absl::InvalidArgumentError(
          absl::StrCat(folder_, " has more than ", kMostFolders,
                       " folders in it, counting those behind links"));
    }
    above_.push_back(place);
    if (!name.empty()) names_.push_back(name);
    REQUANT_RETURN_IF_ERROR(AddEntries(path, name));
    above_.pop_back();
    return absl::OkStatus();
  }

  std::vector<std::string> Files() && {
    std::sort(files_.begin(), files_.end());
    return std::move(files_);
  }

  std::vector<std::string> Folders() && {
    std::sort(names_.begin(), names_.end());
    return std::move(names_);
  }

 private:
  absl::Status AddEntries(const std::string& path, const std::string& name) {
    std::error_code error;
    for (fs::directory_iterator at(path, error), end; !error && at != end;
         at.increment(error)) {
      const std::string own = at->path().filename().string();
      const std::string below =
          name.empty() ? own : absl::StrCat(name, "/", own);
      std::error_code unknown;
      const fs::file_type type = at->status(unknown).type();
      if (type == fs::file_type::directory) {
        REQUANT_RETURN_IF_ERROR(Enter(below));
      } else if (type == fs::file_type::regular) {
        files_.push_back(below);
      } else if (others_ == OtherEntries::kRefuse) {
        return Refused(at->path().string(), type, unknown);
      }
    }
    if (!error) return absl::OkStatus();
    return absl::ErrnoToStatus(error.value(), absl::StrCat("reading ", path));
  }

  static absl::Status Refused(const std::string& path, fs::file_type type,
                              const std::error_code& unknown) {
    const bool leads_nowhere =
        type == fs::file_type::not_found ||
        unknown == std::errc::too_many_symbolic_link_levels;
    if (unknown && !leads_nowhere) {
      return absl::ErrnoToStatus(unknown.value(),
                                 absl::StrCat("reading ", path));
    }
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        leads_nowhere
            ? " is a link to nothing; remove it, or restore what it leads to"
            : " is neither a file nor a folder; remove it"));
  }

  const std::string folder_;
  const OtherEntries others_;
  int folders_ = 0;
  // The folders on the way to where it is, by device and inode.
  std::vector<std::pair<dev_t, ino_t>> above_;
  std::vector<std::string> files_;
  std::vector<std::string> names_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> FilesBelow(
    const std::string& folder, std::vector<std::string>* folders,
    OtherEntries others) {
  Walk walk(folder, others);
  REQUANT_RETURN_IF_ERROR(walk.Enter(""));
  if (folders != nullptr) *folders = std::move(walk).Folders();
  return std::move(walk).Files();
}

absl::StatusOr<int64_t> BytesOf(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return absl::ErrnoToStatus(errno, path);
  if (S_ISREG(info.st_mode)) return info.st_size;
  REQUANT_ASSIGN_OR_RETURN(
      const std::vector<std::string> files,
      FilesBelow(path, /*folders=*/nullptr, OtherEntries::kLeaveOut));
  int64_t bytes = 0;
  for (const std::string& file : files) {
    const std::string below = absl::StrCat(path, "/", file);
    if (stat(below.c_str(), &info) != 0) {
      return absl::ErrnoToStatus(errno, below);
    }
    bytes += info.st_size;
  }
  return bytes;
}

}  // namespace requant
