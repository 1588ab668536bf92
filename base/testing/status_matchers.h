#ifndef REQUANT_BASE_TESTING_STATUS_MATCHERS_H_
#define REQUANT_BASE_TESTING_STATUS_MATCHERS_H_

// For tests of what returns absl::Status or absl::StatusOr.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace requant {

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

#endif  // REQUANT_BASE_TESTING_STATUS_MATCHERS_H_
