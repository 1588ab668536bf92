#include "graph/saved_model/saved_model_writer.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files/file.h"
#include "base/files/files.h"
#include "base/files/sha256.h"
#include "base/status_macros.h"
#include "graph/graph_io.h"
#include "tensorflow/cc/saved_model/fingerprinting.h"
#include "tensorflow/core/protobuf/fingerprint.pb.h"

namespace requant {
namespace {

namespace fs = std::filesystem;

constexpr char kVariables[] = "variables/";
constexpr char kFingerprint[] = "fingerprint.pb";
constexpr char kBinaryName[] = "saved_model.pb";
constexpr char kTextName[] = "saved_model.pbtxt";

bool IsInside(const std::string& inner, const std::string& outer) {
  return absl::StartsWith(inner, outer == "/" ? outer : outer + "/");
}

absl::Status CheckApart(const std::string& source, const std::string& target) {
  const std::string from = ResolvedPath(source), to = ResolvedPath(target);
  const char* how = to == from           ? "it is the model that is read"
                    : IsInside(to, from) ? "it is inside the model that is read"
                    : IsInside(from, to) ? "the model that is read is inside it"
                                         : nullptr;
  if (how == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("cannot write ", target, ": ",
                                                 how, "; name another folder"));
}

absl::StatusOr<std::set<std::string>> NamesIn(const std::string& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    names.insert(at->path().filename().string());
  }
  if (error) {
    return absl::ErrnoToStatus(error.value(),
                               absl::StrCat("cannot read ", folder));
  }
  return names;
}

// Only what this program writes may be replaced by it.
absl::Status CheckOverwrite(const std::string& source,
                            const std::string& target) {
  std::error_code error;
  if (!fs::is_directory(target, error) || fs::is_empty(target, error)) {
    return absl::OkStatus();
  }
  if (!IsSavedModelDirectory(target)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot overwrite ", target,
        ": it is a folder with other things than a SavedModel; remove it or "
        "name another one"));
  }
  REQUANT_ASSIGN_OR_RETURN(std::set<std::string> known, NamesIn(source));
  REQUANT_ASSIGN_OR_RETURN(const std::set<std::string> there, NamesIn(target));
  known.insert({kBinaryName, kTextName, kFingerprint, "variables", "assets",
                "assets.extra", "debug", "keras_metadata.pb", "README.md"});
  for (const std::string& name : there) {
    if (known.count(name) > 0) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot overwrite ", target, ": it has \"", name,
        "\" in it, which is no part of a SavedModel; move that away or name "
        "another folder"));
  }
  return absl::OkStatus();
}

// Adds what to do about an existing target.
absl::Status WithHint(const absl::Status& status) {
  if (!absl::IsAlreadyExists(status)) return status;
  return absl::AlreadyExistsError(
      absl::StrCat(status.message(),
                   "; --overwrite replaces it, --output names another folder"));
}

std::string Gigabytes(int64_t bytes) {
  return absl::StrFormat("%.3g GB", static_cast<double>(bytes) / 1e9);
}

absl::Status CheckRoom(const std::string& folder, const std::string& target,
                       int64_t bytes) {
  struct statvfs info;
  if (statvfs(folder.c_str(), &info) != 0) return absl::OkStatus();
  const auto free = static_cast<double>(info.f_bavail) * info.f_frsize;
  if (static_cast<double>(bytes) <= free) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "cannot write ", target, ": it takes ", Gigabytes(bytes), " and ",
      Gigabytes(static_cast<int64_t>(free)),
      " are free there; make room or name a folder on another disk"));
}

int64_t SizeOf(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 ? info.st_size : 0;
}

}  // namespace

absl::StatusOr<VariablePlacement> ParseVariablePlacement(
    const std::string& text) {
  if (text == "auto") return VariablePlacement::kAuto;
  if (text == "link") return VariablePlacement::kLink;
  if (text == "copy") return VariablePlacement::kCopy;
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is none of auto, link and copy"));
}

absl::Status WriteFingerprint(const std::string& folder,
                              const std::string& content) {
  auto fingerprint =
      tensorflow::saved_model::fingerprinting::CreateFingerprintDef(folder);
  if (!fingerprint.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot be computed: ", fingerprint.status().message()));
  }
  fingerprint->set_uuid(Sha256(content).substr(0, 32));
  return WriteFileAtomically(absl::StrCat(folder, "/", kFingerprint),
                             DeterministicBytes(*fingerprint));
}

absl::Status CheckOutside(const std::string& file, const std::string& target) {
  const std::string path = ResolvedPath(file), folder = ResolvedPath(target);
  if (path != folder && !IsInside(path, folder)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cannot write ", file, ": it is inside ", target,
                   ", which is written as a whole; name a file elsewhere"));
}

SavedModelWriter::SavedModelWriter(const SavedModelWriterOptions& options,
                                   std::unique_ptr<StagedFolder> folder)
    : options_(options), folder_(std::move(folder)) {}

absl::Status CheckSavedModelTarget(const std::string& source,
                                   const std::string& target, bool overwrite) {
  REQUANT_RETURN_IF_ERROR(CheckApart(source, target));
  return overwrite ? CheckOverwrite(source, target) : absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<SavedModelWriter>> SavedModelWriter::Open(
    const SavedModelWriterOptions& options) {
  REQUANT_RETURN_IF_ERROR(
      CheckSavedModelTarget(options.source, options.target, options.overwrite));
  auto folder = StagedFolder::Create(options.target, options.overwrite);
  REQUANT_RETURN_IF_ERROR(WithHint(folder.status()));
  return absl::WrapUnique(new SavedModelWriter(options, *std::move(folder)));
}

std::string SavedModelWriter::From(const std::string& file) const {
  return absl::StrCat(options_.source, "/", file);
}

std::string SavedModelWriter::To(const std::string& file) const {
  return absl::StrCat(folder_->path(), "/", file);
}

// Clones or links the files of variables; appends to `rest` those to copy.
absl::Status SavedModelWriter::PlaceVariables(
    const std::vector<std::string>& files, std::vector<std::string>* rest) {
  for (const std::string& file : files) {
    ++placed_.files;
    placed_.bytes += SizeOf(From(file));
    if (options_.variables != VariablePlacement::kLink &&
        CloneFile(From(file), To(file)).ok()) {
      ++placed_.cloned;
      continue;
    }
    absl::Status linked = absl::UnavailableError("");
    if (options_.variables != VariablePlacement::kCopy) {
      linked = LinkFile(From(file), To(file));
    }
    if (linked.ok()) {
      ++placed_.linked;
    } else if (options_.variables == VariablePlacement::kLink) {
      return absl::Status(linked.code(),
                          absl::StrCat(linked.message(),
                                       "; --copy=auto copies where files "
                                       "cannot be linked"));
    } else {
      ++placed_.copied;
      rest->push_back(file);
    }
  }
  return absl::OkStatus();
}

absl::Status SavedModelWriter::CopyRest(const std::vector<std::string>& files,
                                        int64_t more_bytes) {
  std::vector<std::string> copied;
  for (const std::string& file : files) {
    if (CloneFile(From(file), To(file)).ok()) continue;
    copied.push_back(file);
    more_bytes += AllocatedBytes(From(file));
  }
  REQUANT_RETURN_IF_ERROR(
      CheckRoom(folder_->path(), options_.target, more_bytes));
  for (const std::string& file : copied) {
    REQUANT_RETURN_IF_ERROR(CopyFile(From(file), To(file)));
  }
  return absl::OkStatus();
}

absl::Status SavedModelWriter::RenewFingerprint(const std::string& name,
                                                const std::string& content) {
  if (name != kBinaryName) {
    notes_.push_back(absl::StrCat("left out ", kFingerprint,
                                  ", which TensorFlow has for a binary ",
                                  kBinaryName, " only"));
    return absl::OkStatus();
  }
  const absl::Status written = WriteFingerprint(folder_->path(), content);
  if (absl::IsInvalidArgument(written)) {
    notes_.push_back(
        absl::StrCat("left out ", kFingerprint, ", which ", written.message()));
    return absl::OkStatus();
  }
  return written;
}

absl::Status SavedModelWriter::Fill(const std::string& name,
                                    const std::optional<std::string>& content) {
  std::vector<std::string> folders;
  REQUANT_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                           FilesBelow(options_.source, &folders));
  for (const std::string& folder : folders) {
    if (mkdir(To(folder).c_str(), 0777) != 0) {
      return absl::ErrnoToStatus(
          errno, absl::StrCat("cannot write ", options_.target, "/", folder));
    }
  }
  std::vector<std::string> variables, rest;
  bool has_fingerprint = false;
  for (const std::string& file : files) {
    if (absl::StartsWith(file, kVariables)) {
      variables.push_back(file);
    } else if (!content.has_value()) {
      rest.push_back(file);
    } else if (file == kFingerprint) {
      has_fingerprint = true;
    } else if (file == kTextName && name != kTextName) {
      notes_.push_back(absl::StrCat("left out ", kTextName,
                                    ", which TensorFlow "
                                    "does not read beside ",
                                    kBinaryName));
    } else if (file != name) {
      rest.push_back(file);
    }
  }
  REQUANT_RETURN_IF_ERROR(PlaceVariables(variables, &rest));
  REQUANT_RETURN_IF_ERROR(
      CopyRest(rest, content.has_value() ? content->size() : 0));
  if (!content.has_value()) return absl::OkStatus();
  REQUANT_RETURN_IF_ERROR(WriteFileAtomically(To(name), *content));
  return has_fingerprint ? RenewFingerprint(name, *content) : absl::OkStatus();
}

absl::Status SavedModelWriter::Commit() {
  // The target may have changed since Open.
  if (options_.overwrite) {
    REQUANT_RETURN_IF_ERROR(CheckOverwrite(options_.source, options_.target));
  }
  return WithHint(folder_->Commit());
}

}  // namespace requant
