// The main function of our test programs. It is GoogleTest's own, except that a
// program that runs no case at all fails, because that means that its pattern
// of cases (requant_tests in defs.bzl) matches none.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  const int code = RUN_ALL_TESTS();
  // With --test_filter, some programs legitimately run no cases.
  const bool chosen = std::getenv("TESTBRIDGE_TEST_ONLY") != nullptr;
  if (testing::UnitTest::GetInstance()->test_to_run_count() == 0 && !chosen &&
      !testing::GTEST_FLAG(list_tests)) {
    std::cerr << "no case matches " << testing::GTEST_FLAG(filter) << "\n";
    return 1;
  }
  return code;
}
