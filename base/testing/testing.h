#ifndef REQUANT_BASE_TESTING_TESTING_H_
#define REQUANT_BASE_TESTING_TESTING_H_

// For tests: GoogleTest with the usual matchers under their short names, and a
// folder to write to. Test files need not include what this header does.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/status_matchers.h"

namespace requant {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;
using testing::UnorderedElementsAre;

// An empty folder, removed at the end.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  // Returns the folder, and the path of `name` in it.
  const std::string& path() const { return path_; }
  std::string Path(const std::string& name) const;
  // Makes the folder that `name` is in, too, and returns its path.
  std::string Write(const std::string& name, const std::string& content) const;
  // Copies a folder of test data, which may consist of links, to files that may
  // be changed.
  std::string Copy(const std::string& source, const std::string& name) const;
  // Returns the content of a file; a missing one fails the test.
  std::string Read(const std::string& name) const;
  // Returns the names of all that is in the folder, hidden ones too, sorted.
  std::vector<std::string> Names() const;

 private:
  std::string path_;
};

}  // namespace requant

#endif  // REQUANT_BASE_TESTING_TESTING_H_
