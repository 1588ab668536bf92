#ifndef REQUANT_BASE_TESTING_TESTING_H_
#define REQUANT_BASE_TESTING_TESTING_H_

// Provides GoogleTest with the usual matchers under their short names, matchers
// for absl::Status and absl::StatusOr, and a folder to write to. Test files
// need not include what this header does.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

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

inline const absl::Status& StatusOf(const absl::Status& status) {
  return status;
}
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

// Matches a status, or a result, that is OK.
MATCHER(IsOk, negation ? "is an error" : "is OK") {
  *result_listener << StatusOf(arg);
  return StatusOf(arg).ok();
}

// Matches an error whose message matches `message`.
MATCHER_P(FailsWith, message,
          "is an error whose message " +
              testing::DescribeMatcher<std::string>(message, negation)) {
  *result_listener << StatusOf(arg);
  return !StatusOf(arg).ok() &&
         testing::Value(std::string(StatusOf(arg).message()), message);
}

// An initially empty folder that is removed at the end.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  // Returns the folder, and the path of `name` in it.
  const std::string& path() const { return path_; }
  std::string Path(const std::string& name) const;
  // Also creates the folder that `name` is in; returns the file's path.
  std::string Write(const std::string& name, const std::string& content) const;
  // Copies a folder of test data, which may consist of links, to files that can
  // be changed.
  std::string Copy(const std::string& source, const std::string& name) const;
  // Returns the content of a file; a missing one fails the test.
  std::string Read(const std::string& name) const;
  // Returns the names of all entries of the folder, hidden ones too, sorted.
  std::vector<std::string> Names() const;

 private:
  std::string path_;
};

}  // namespace requant

#define EXPECT_OK(...) EXPECT_THAT((__VA_ARGS__), requant::IsOk())
#define ASSERT_OK(...) ASSERT_THAT((__VA_ARGS__), requant::IsOk())

// Assigns the value of a StatusOr to `lhs` (which may declare a variable), or
// fails the test.
#define ASSERT_OK_AND_ASSIGN(lhs, ...)                                       \
  ASSERT_OK_AND_ASSIGN_(REQUANT_TEST_CONCAT_(requant_result, __LINE__), lhs, \
                        __VA_ARGS__)
#define ASSERT_OK_AND_ASSIGN_(result, lhs, ...) \
  auto result = (__VA_ARGS__);                  \
  ASSERT_OK(result);                            \
  lhs = *std::move(result)
#define REQUANT_TEST_CONCAT_(a, b) REQUANT_TEST_CONCAT_INNER_(a, b)
#define REQUANT_TEST_CONCAT_INNER_(a, b) a##b

#endif  // REQUANT_BASE_TESTING_TESTING_H_
