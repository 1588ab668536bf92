#include "base/files/matching_files.h"

#include <glob.h>

#include <algorithm>
#include <string>
#include <vector>

namespace requant {

std::vector<std::string> MatchingFiles(const std::string& pattern) {
  glob_t found = {};
  std::vector<std::string> files;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  globfree(&found);
  // glob() sorts by the locale.
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace requant
