#include "tests/support/workflow_runs.h"

#include <filesystem>
#include <random>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/files/file.h"
#include "re2/re2.h"

namespace requant {
namespace {

constexpr char kTinyWorkflow[] = R"tiny(
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
    verify { evaluation: "rows" gates { max_output_change: 1e-5 } }
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
    convert { saved_model { file: "SAVED_MODEL" } variables: "copy" }
  }
  stage {
    name: "other"
    transform {
      graph { stage: "trim" }
      outputs: "predict"
      transforms: "rename_op(old_op_name=Relu, new_op_name=Abs)"
    }
    verify { evaluation: "rows" gates { max_output_change: 1e-5 } }
  })tiny";

std::vector<float> Weights(int count, std::mt19937* random) {
  std::vector<float> weights(count);
  for (float& weight : weights) weight = (*random)() % 2001 / 1000.0f - 1;
  return weights;
}

// Returns a graph from x [?, 4] through two layers to two classes.
std::string Classifier() {
  std::mt19937 random(1);
  return absl::StrCat(FloatConst("w", {4, 8}, Weights(32, &random)),
                      FloatConst("w1", {8, 2}, Weights(16, &random)), R"(
    x = Placeholder dtype=float shape=<?,4>
    m = MatMul(x, w) T=float
    hidden = Relu(m) T=float
    logits = MatMul(hidden, w1) T=float
    predict = Softmax(logits) T=float
  )");
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

Words SmallRun(const std::string& work_dir, const std::string& out,
               const Words& more) {
  return Joined(
      {"run", "workflows/wide_deep.textproto", "--set", "eval_records=4000",
       "--set", "calibration_records=4096",
       absl::StrCat("--work_dir=", work_dir), absl::StrCat("--out=", out)},
      more);
}

ProgramRun RunSmall(const std::string& work_dir, const std::string& out,
                    const Words& more) {
  return RunProgram(kRequant, SmallRun(work_dir, out, more));
}

std::set<std::string> TasksDone(const std::string& error) {
  static const RE2 kDone("^[0-9:]{8} (\\S+)  done in ");
  std::set<std::string> tasks;
  for (const std::string_view line : absl::StrSplit(error, '\n')) {
    std::string task;
    if (RE2::PartialMatch(line, kDone, &task)) tasks.insert(task);
  }
  return tasks;
}

std::map<std::string, std::string> GraphsAndRanges(const std::string& out) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : std::filesystem::directory_iterator(out)) {
    const std::string name = entry.path().filename().string();
    // Figures contain times.
    if (absl::EndsWith(name, ".evaluation.pb") ||
        absl::EndsWith(name, ".benchmark.pb")) {
      continue;
    }
    if (absl::EndsWith(name, ".pb") || absl::EndsWith(name, ".ranges")) {
      const auto content = ReadFile(entry.path().string());
      EXPECT_TRUE(content.ok()) << content.status();
      if (content.ok()) contents[name] = *content;
    }
  }
  return contents;
}

void ExpectSameGraphsAndRanges(const std::string& a, const std::string& b) {
  const auto first = GraphsAndRanges(a), second = GraphsAndRanges(b);
  EXPECT_EQ(second.size(), first.size());
  for (const auto& [name, content] : first) {
    const auto other = second.find(name);
    ASSERT_NE(other, second.end()) << name;
    EXPECT_TRUE(other->second == content) << name << " differs";
  }
}

TinyWorkflow::TinyWorkflow() {
  folder.WriteText("float.pbtxt", GraphFromText(Classifier()));
  folder.Write("data.csv", Rows());
  folder.Write("data.textproto", CsvDeclaration(4));
  const std::string model =
      std::filesystem::absolute("workflows/gptj_tiny/saved_model/1").string();
  folder.Write("tiny.textproto",
               absl::StrReplaceAll(kTinyWorkflow, {{"SAVED_MODEL", model}}));
}

Words TinyWorkflow::Arguments() const {
  return {"run", folder.Path("tiny.textproto"), "--keep_going",
          absl::StrCat("--work_dir=", folder.Path("work")),
          absl::StrCat("--out=", folder.Path("out"))};
}

ProgramRun TinyWorkflow::Run(const Words& more) const {
  return RunProgram(kRequant, Joined(Arguments(), more));
}

}  // namespace requant
