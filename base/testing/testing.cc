#include "base/testing/testing.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/files/file.h"

namespace requant {

namespace fs = std::filesystem;

ScratchFolder::ScratchFolder() {
  path_ = testing::TempDir() + "/folder.XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) ADD_FAILURE() << "no folder " << path_;
}

ScratchFolder::~ScratchFolder() { fs::remove_all(path_); }

std::string ScratchFolder::Path(const std::string& name) const {
  return path_ + "/" + name;
}

std::string ScratchFolder::Write(const std::string& name,
                                 const std::string& content) const {
  fs::create_directories(fs::path(Path(name)).parent_path());
  EXPECT_OK(WriteFileAtomically(Path(name), content));
  return Path(name);
}

std::string ScratchFolder::Copy(const std::string& source,
                                const std::string& name) const {
  fs::copy(source, Path(name), fs::copy_options::recursive);
  for (const auto& entry : fs::recursive_directory_iterator(Path(name))) {
    fs::permissions(entry, fs::perms::owner_write, fs::perm_options::add);
  }
  return Path(name);
}

std::string ScratchFolder::Read(const std::string& name) const {
  const auto content = ReadFile(Path(name));
  EXPECT_OK(content);
  return content.value_or("");
}

std::vector<std::string> ScratchFolder::Names() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path_)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace requant
