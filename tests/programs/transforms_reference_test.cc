#include "base/files/file.h"
#include "graph/testing/program.h"

namespace requant::transforms_reference_test {
namespace {

TEST(TransformsReference, IsWhatTheProgramPrints) {
  const auto run = RunProgram(kTransformGraph, {"--transforms_markdown"});
  ASSERT_THAT(run, Exits(0));
  ASSERT_OK_AND_ASSIGN(const auto page, ReadFile("docs/transforms.md"));
  EXPECT_TRUE(page == run.out)
      << "docs/transforms.md is out of date; refresh it with\n"
         "  bazel-bin/transforms/transform_graph --transforms_markdown "
         "> docs/transforms.md";
}

}  // namespace
}  // namespace requant::transforms_reference_test
