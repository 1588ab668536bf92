#include "base/process/sibling_program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/process/subprocess.h"
#include "base/status_macros.h"

namespace requant {
namespace {

bool IsProgram(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

std::string ParentOf(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

}  // namespace

absl::StatusOr<std::string> SiblingProgram(const std::string& own_path,
                                           const std::string& package,
                                           const std::string& name) {
  const std::string folder = ParentOf(own_path);
  const std::string in_package =
      absl::StrCat(ParentOf(folder), "/", package, "/", name);
  if (IsProgram(in_package)) return in_package;
  const std::string beside = absl::StrCat(folder, "/", name);
  if (IsProgram(beside)) return beside;
  return absl::NotFoundError(absl::StrCat(
      "the program ", name, " is missing: there is no ", in_package, " and no ",
      beside, "; ./requant build makes it"));
}

absl::Status BecomeProgram(const std::string& path,
                           const std::vector<std::string>& args,
                           const std::string& typed) {
  std::vector<char*> argv = {
      const_cast<char*>(typed.empty() ? path.c_str() : typed.c_str())};
  for (const std::string& arg : args) {
    argv.push_back(const_cast<char*>(arg.c_str()));
  }
  argv.push_back(nullptr);
  execvp(path.c_str(), argv.data());
  return absl::FailedPreconditionError(
      absl::StrCat("cannot start ", path, ": ", std::strerror(errno)));
}

absl::Status BecomeSiblingProgram(const std::string& package,
                                  const std::string& name,
                                  const std::vector<std::string>& args,
                                  const std::string& typed) {
  REQUANT_ASSIGN_OR_RETURN(const std::string own_path, OwnPath());
  REQUANT_ASSIGN_OR_RETURN(const std::string path,
                           SiblingProgram(own_path, package, name));
  return BecomeProgram(path, args, typed);
}

}  // namespace requant
