#include "tests/support/tiny_workflow.h"

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "graph/testing/graph_text.h"
#include "graph/testing/testing.h"

namespace requant {
namespace {

constexpr char kWorkflow[] = R"pb(
  name: "tiny"
  evaluation {
    name: "rows"
    on { dataset: "data.textproto" batch_size: "50" }
    baseline { file: "float.pbtxt" }
    layer_records: "50"
  }
  stage {
    name: "look"
    summarize { graph { file: "float.pbtxt" } }
  }
  stage {
    name: "trim"
    transform {
      graph { file: "float.pbtxt" }
      outputs: "predict"
      transforms: "strip_unused_nodes"
    }
    verify {
      evaluation: "rows"
      gates { max_output_change: 1e-5 }
    }
  }
  stage {
    name: "ranges"
    calibrate {
      graph { stage: "trim" }
      on { dataset: "data.textproto" batch_size: "50" }
      direct {}
    }
  }
  stage {
    name: "model"
    convert {
      saved_model { file: "SAVED_MODEL" }
      variables: "copy"
    }
  }
  stage {
    name: "other"
    transform {
      graph { stage: "trim" }
      outputs: "predict"
      transforms: "rename_op(old_op_name=Relu, new_op_name=Abs)"
    }
    verify {
      evaluation: "rows"
      gates { max_output_change: 1e-5 }
    }
  })pb";

std::vector<float> Weights(int count, std::mt19937* random) {
  std::vector<float> weights(count);
  for (float& weight : weights) weight = (*random)() % 2001 / 1000.0f - 1;
  return weights;
}

// x [?, 4] through two layers to two classes.
std::string Classifier() {
  std::mt19937 random(1);
  return absl::StrCat(Placeholder("x", {-1, 4}),
                      FloatConst("w", {4, 8}, Weights(32, &random)),
                      Node("m", "MatMul", {"x", "w"}, {kFloat}),
                      Node("hidden", "Relu", {"m"}, {kFloat}),
                      FloatConst("w1", {8, 2}, Weights(16, &random)),
                      Node("logits", "MatMul", {"hidden", "w1"}, {kFloat}),
                      Node("predict", "Softmax", {"logits"}, {kFloat}));
}

std::string Rows() {
  std::mt19937 random(2);
  std::string rows = "x,label\n";
  for (int row = 0; row < 100; ++row) {
    for (int i = 0; i < 4; ++i) {
      absl::StrAppend(&rows, random() % 4001 / 1000.0 - 2, i < 3 ? " " : ",");
    }
    absl::StrAppend(&rows, random() % 2, "\n");
  }
  return rows;
}

}  // namespace

TinyWorkflow::TinyWorkflow() {
  folder.WriteText("float.pbtxt", GraphFromText(Classifier()));
  folder.Write("data.csv", Rows());
  folder.Write("data.textproto", R"pb(
    csv { files: "data.csv" }
    input { feature: "x" placeholder: "x" dtype: "float" shape: 4 }
    label { feature: "label" dtype: "int64" }
    prediction { tensor: "predict" }
  )pb");
  const std::string model =
      std::filesystem::absolute("workflows/gptj_tiny/saved_model/1").string();
  folder.Write("tiny.textproto",
               absl::StrReplaceAll(kWorkflow, {{"SAVED_MODEL", model}}));
}

std::vector<std::string> TinyWorkflow::Arguments() const {
  return {"run", folder.Path("tiny.textproto"), "--keep_going",
          absl::StrCat("--work_dir=", folder.Path("work")),
          absl::StrCat("--out=", folder.Path("out"))};
}

ProgramRun TinyWorkflow::Run(const std::vector<std::string>& more) const {
  std::vector<std::string> arguments = Arguments();
  arguments.insert(arguments.end(), more.begin(), more.end());
  return RunProgram("workflows/requant", arguments);
}

}  // namespace requant
