#include "tests/support/judged_runs.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"

namespace requant {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

// The member of that name; an empty value when there is none.
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
  RunModel model = {absl::StrCat("small_", letter),
                    {absl::StrCat("--set=model=", folder, "model"),
                     absl::StrCat("--set=ranges=", folder, "ranges.json"),
                     absl::StrCat("--set=buckets=", buckets)}};
  return model;
}

}  // namespace

const std::vector<RunModel>& RunModels() {
  static const auto* const models = new std::vector<RunModel>{
      {"embedded", {}}, SmallModel("a", 200), SmallModel("b", 300)};
  return *models;
}

JudgedRun RunJudge::Run(const std::string& workflow,
                        const std::vector<std::string>& arguments,
                        const std::vector<std::string>& variables) {
  const std::string out = folder_.Path(absl::StrCat("run_", ++runs_));
  std::vector<std::string> all = {
      "run", absl::StrCat("workflows/", workflow, ".textproto"),
      absl::StrCat("--work_dir=", folder_.Path("work")),
      absl::StrCat("--out=", out)};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const ProgramRun ended = RunProgram("workflows/requant", all, variables);
  JudgedRun run;
  run.exit_code = ended.exit_code;
  run.text = absl::StrCat(ended.out, ended.error);
  const auto json = ReadFile(absl::StrCat(out, "/results.json"));
  EXPECT_TRUE(json.ok()) << json.status() << "\n" << run.text;
  if (json.ok()) ReadResults(*json, &run);
  return run;
}

}  // namespace requant
