#include <gtest/gtest.h>

#include "base/files/file.h"
#include "graph/testing/program.h"

namespace requant::transforms_reference_test {
namespace {

TEST(TransformsReference, IsWhatTheProgramPrints) {
  const auto run = RunProgram(kTransformGraph, {"--transforms_markdown"});
  ASSERT_EQ(run.exit_code, 0) << run.error;
  const auto page = ReadFile("docs/transforms.md");
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_TRUE(*page == run.out)
      << "docs/transforms.md is out of date; refresh it with\n"
         "  bazel-bin/transforms/transform_graph --transforms_markdown "
         "> docs/transforms.md";
}

}  // namespace
}  // namespace requant::transforms_reference_test
