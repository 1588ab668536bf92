#include "graph/saved_model/saved_model_export.h"

#include <filesystem>
#include <random>

#include "base/files/file.h"
#include "base/files/files.h"
#include "graph/constant_store.h"
#include "graph/graph_io.h"
#include "graph/saved_model/saved_model_file.h"
#include "graph/tensorflow_library.h"
#include "graph/testing/program.h"
#include "graph/testing/saved_models.h"
#include "tensorflow/cc/saved_model/loader.h"
#include "tensorflow/core/public/session.h"

namespace requant::saved_model_export_test {
namespace {

namespace fs = std::filesystem;

std::string TestModel(const std::string& name) {
  return "graph/testdata/" + name;
}

// Loads both with TensorFlow's own loader and runs all signatures of the first.
void ExpectServesLike(const std::string& original, const std::string& model) {
  ASSERT_OK(LoadTensorFlow());
  tensorflow::SavedModelBundle bundles[2];
  ASSERT_OK(
      tensorflow::LoadSavedModel({}, {}, original, {"serve"}, &bundles[0]));
  ASSERT_OK(tensorflow::LoadSavedModel({}, {}, model, {"serve"}, &bundles[1]));
  std::mt19937 generator(1);
  const auto& signatures = bundles[0].meta_graph_def.signature_def();
  for (const std::string& key : SignatureNames(bundles[0].meta_graph_def)) {
    const auto& signature = signatures.at(key);
    const auto& own = bundles[1].meta_graph_def.signature_def();
    ASSERT_TRUE(own.contains(key)) << key;
    EXPECT_TRUE(SameMessage(signature, own.at(key))) << key;
    std::vector<std::pair<std::string, Tensor>> feeds;
    for (const auto& [name, info] : signature.inputs()) {
      feeds.emplace_back(info.name(), RandomInput(info, &generator));
    }
    std::vector<std::string> fetches;
    for (const auto& [name, info] : signature.outputs()) {
      fetches.push_back(info.name());
    }
    std::vector<Tensor> expected, actual;
    ASSERT_OK(bundles[0].session->Run(feeds, fetches, {}, &expected));
    // Tables are filled once, before the first run.
    for (int run = 0; run < 2; ++run) {
      ASSERT_OK(bundles[1].session->Run(feeds, fetches, {}, &actual));
      for (size_t i = 0; i < fetches.size(); ++i) {
        ExpectSameTensors(expected[i], actual[i]);
      }
    }
  }
}

class ExportRealModel : public testing::TestWithParam<std::string> {
 protected:
  const ScratchFolder folder_;
  const std::string model_ = TestModel(GetParam());
  const std::string target_ = folder_.path() + "/1";
};

TEST_P(ExportRealModel, ServesLikeTheOriginal) {
  ASSERT_OK_AND_ASSIGN(const ExportedModel exported,
                       FreezeAndExport(model_, int64_t{1} << 30, target_));
  EXPECT_EQ(exported.variables, 0);
  ExpectServesLike(model_, target_);
  ASSERT_OK_AND_ASSIGN(const auto original, ReadSavedModel(model_));
  ASSERT_OK_AND_ASSIGN(const auto meta, ReadSavedModel(target_));
  EXPECT_EQ(meta.has_object_graph_def(), original.has_object_graph_def());
}

TEST_P(ExportRealModel, ServesLikeTheOriginalWithWeightsInVariables) {
  ASSERT_OK_AND_ASSIGN(const ExportedModel exported,
                       FreezeAndExport(model_, 0, target_));
  ExpectServesLike(model_, target_);
  // The nodes of the smallest constants are shorter than 80 bytes.
  EXPECT_GT(exported.variables, 0);
  EXPECT_TRUE(fs::exists(target_ + "/variables/variables.index"));
}

void ExpectSameFiles(const std::string& one, const std::string& other) {
  ASSERT_OK_AND_ASSIGN(const auto files, FilesBelow(one));
  EXPECT_EQ(files, *FilesBelow(other));
  for (const std::string& file : files) {
    EXPECT_TRUE(*ReadFile(absl::StrCat(one, "/", file)) ==
                *ReadFile(absl::StrCat(other, "/", file)))
        << file;
  }
}

TEST_P(ExportRealModel, GivesTheSameBytesEachTime) {
  const std::string again = folder_.path() + "/2";
  ASSERT_OK(FreezeAndExport(model_, 0, target_).status());
  ASSERT_OK(FreezeAndExport(model_, 0, again).status());
  ExpectSameFiles(target_, again);
}

TEST_P(ExportRealModel, GivesTheSameBytesOfConstantsOutsideOfTheGraph) {
  // As a graph alone, with all its weights in variables, and with some.
  for (const int64_t most : {int64_t{1} << 30, int64_t{0}, int64_t{2000}}) {
    const std::string expected = absl::StrCat(target_, "/in_graph_", most);
    const std::string folder = absl::StrCat(target_, "/outside_", most);
    ASSERT_OK(FreezeAndExport(model_, most, expected).status());
    const ConstantStore store(64);
    ASSERT_OK(FreezeAndExport(model_, most, folder).status());
    ExpectSameFiles(expected, folder);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ExportRealModel,
                         testing::Values("resource_variables",
                                         "partitioned_variables", "functions",
                                         "vocabulary_v1", "vocabulary_v2"),
                         [](const auto& info) { return info.param; });

class Export : public testing::Test {
 protected:
  const ScratchFolder folder_;
  const std::string target_ = folder_.path() + "/1";
};

TEST_F(Export, KeepsVocabulariesAsAssets) {
  for (const char* name : {"vocabulary_v1", "vocabulary_v2"}) {
    const std::string target = folder_.path() + "/" + name;
    ASSERT_OK_AND_ASSIGN(
        const ExportedModel exported,
        FreezeAndExport(TestModel(name), int64_t{1} << 30, target));
    EXPECT_THAT(exported.assets, ElementsAre("words.txt"));
    EXPECT_EQ(exported.tables, 2);
    EXPECT_EQ(*ReadFile(target + "/assets/words.txt"), "red\ngreen\nblue\n");
    // The words are in the file only.
    ASSERT_OK_AND_ASSIGN(const auto meta, ReadSavedModel(target));
    for (const NodeDef& node : meta.graph_def().node()) {
      EXPECT_THAT(node.ShortDebugString(), Not(HasSubstr("green")));
    }
  }
}

TEST_F(Export, RefusesAGraphWithoutAnOutput) {
  ExportOptions options;
  options.source = TestModel("functions");
  ASSERT_OK_AND_ASSIGN(const auto meta, ReadSavedModel(options.source));
  options.signatures["serving_default"] =
      meta.signature_def().at("serving_default");
  fs::create_directories(target_);
  EXPECT_THAT(
      ExportSavedModel(options, GraphFromText("x = Placeholder dtype=float"),
                       target_)
          .status()
          .message(),
      AllOf(HasSubstr("of the signature \"serving_default\" is no longer"),
            HasSubstr("StatefulPartitionedCall")));
  EXPECT_TRUE(fs::is_empty(target_));
}

}  // namespace
}  // namespace requant::saved_model_export_test
