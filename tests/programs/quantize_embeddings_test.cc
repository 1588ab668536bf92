// quantize_embeddings on the model of the published recipe, with kernels, sizes
// and records as users have them.

#include "tests/support/recipe.h"

namespace requant::quantize_embeddings_test {
namespace {

TEST(QuantizedEmbeddings, PredictTheSameToTheLastBit) {
  WideDeepRecipe recipe(3000, 3000);
  recipe.MakeFloatGraph();
  recipe.MakeDynamicGraph();
  recipe.FreezeAsPublished();
  recipe.Fuse();
  recipe.Transform(
      kFinalGraph, "moved.pb", "quantize_embeddings",
      {"--inputs=new_numeric_placeholder,new_categorical_placeholder",
       "--outputs=" + recipe.output});
  EXPECT_THAT(
      RunProgram("runtime/evaluate_graph",
                 {"--graph=" + recipe.folder.Path("moved.pb"),
                  "--baseline=" + recipe.folder.Path(kFinalGraph),
                  "--dataset=workflows/wide_deep/preprocessed.textproto",
                  "--data=" + recipe.folder.Path(
                                  "dataset_preprocessed_eval.tfrecords")}),
      Prints("mean |change| 0, largest 0 "));
  EXPECT_LT(recipe.folder.Read("moved.pb").size(),
            0.27 * recipe.folder.Read(kFloatGraph).size());
}

}  // namespace
}  // namespace requant::quantize_embeddings_test
