#include "tests/support/workflow_runs.h"

#include <filesystem>
#include <random>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/files/file.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "re2/re2.h"

namespace requant {
namespace {

using google::protobuf::Value;

// Returns the member of that name; an empty value when there is none.
const Value& Member(const Value& value, const std::string& name) {
  const auto& fields = value.struct_value().fields();
  const auto found = fields.find(name);
  return found == fields.end() ? Value::default_instance() : found->second;
}

std::string Text(const Value& value, const std::string& name) {
  return Member(value, name).string_value();
}

bool Failed(const Value& work) { return Text(work, "state") == "failed"; }

void ReadStage(const Value& stage, JudgedRun* run) {
  const std::string name = Text(stage, "name");
  const Value& verification = Member(stage, "verification");
  std::vector<std::string> failed;
  for (const Value& gate :
       Member(verification, "gates").list_value().values()) {
    if (Text(gate, "verdict") == "fail") failed.push_back(Text(gate, "name"));
    if (Text(gate, "verdict") == "inconclusive") {
      run->uncertain.push_back(
          absl::StrCat(name, ": ", Text(gate, "sentence")));
    }
  }
  if (!run->stopped_at.empty()) return;
  if (!failed.empty() || Failed(Member(stage, "work")) ||
      Failed(Member(verification, "work"))) {
    run->stopped_at = name;
    run->failed_gates = failed;
  }
}

void ReadResults(const std::string& json, JudgedRun* run) {
  Value results;
  const auto status =
      google::protobuf::util::JsonStringToMessage(json, &results);
  ASSERT_TRUE(status.ok()) << status.ToString();
  for (const Value& stage : Member(results, "stages").list_value().values()) {
    ReadStage(stage, run);
  }
}

RunModel SmallModel(const std::string& letter, int buckets) {
  const std::string folder =
      absl::StrCat("tests/data/wide_deep_small_", letter, "/");
  return {absl::StrCat("small_", letter),
          {absl::StrCat("--set=model=", folder, "model"),
           absl::StrCat("--set=ranges=", folder, "ranges.json"),
           absl::StrCat("--set=buckets=", buckets)}};
}

constexpr char kTinyWorkflow[] = R"pb(
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

// Returns x [?, 4] through two layers to two classes.
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
    // Figures have times in them.
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

const std::vector<RunModel>& RunModels() {
  static const auto* const models = new std::vector<RunModel>{
      {"embedded", {}}, SmallModel("a", 200), SmallModel("b", 300)};
  return *models;
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

JudgedRun RunJudge::Run(const std::string& workflow, const Words& arguments,
                        const Words& variables) {
  const std::string out = folder_.Path(absl::StrCat("run_", ++runs_));
  const ProgramRun ended = RunProgram(
      kRequant,
      Joined({"run", absl::StrCat("workflows/", workflow, ".textproto"),
              absl::StrCat("--work_dir=", folder_.Path("work")),
              absl::StrCat("--out=", out)},
             arguments),
      variables);
  JudgedRun run;
  run.exit_code = ended.exit_code;
  run.text = absl::StrCat(ended.out, ended.error);
  const auto json = ReadFile(absl::StrCat(out, "/results.json"));
  EXPECT_TRUE(json.ok()) << json.status() << "\n" << run.text;
  if (json.ok()) ReadResults(*json, &run);
  return run;
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
