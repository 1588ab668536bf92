#include "workflows/run/task_command.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/testing/golden_cases.h"
#include "google/protobuf/text_format.h"
#include "graph/testing/testing.h"

namespace requant::task_command_test {
namespace {

// A plan with one task, made from lines such as
//
//   make stage { name: 's' summarize {} }
//   graph > text
//   streams=2
//
// that have the task's kind and the workflow, its inputs and outputs, and other
// settings. Inputs have the paths "<role>.in", outputs "<role>.out".
class OneTask {
 public:
  explicit OneTask(const std::vector<std::string> &lines) {
    const std::vector<std::string> first =
        absl::StrSplit(lines.at(0), absl::MaxSplits(' ', 1));
    Workflow &workflow = plan_.file.workflow;
    EXPECT_TRUE(
        google::protobuf::TextFormat::ParseFromString(first.at(1), &workflow));
    task_.kind = first[0] == "make"     ? Task::Kind::kMake
                 : first[0] == "verify" ? Task::Kind::kVerify
                                        : Task::Kind::kBaseline;
    task_.stage = task_.kind == Task::Kind::kBaseline ? -1 : 0;
    task_.evaluation = workflow.evaluation_size() > 0 ? 0 : -1;
    bool is_output = false;
    const std::vector<std::string> roles =
        absl::StrSplit(lines.at(1), ' ', absl::SkipEmpty());
    for (const std::string &role : roles) {
      if (role == ">") {
        is_output = true;
      } else if (is_output) {
        task_.outputs.push_back({role, ""});
        paths_.outputs.push_back(role + ".out");
      } else {
        task_.inputs.push_back({role, -1, "", ""});
        paths_.inputs.push_back(role + ".in");
      }
    }
    for (size_t i = 2; i < lines.size(); ++i) Set(lines[i]);
  }

  // Returns the commands as a shell would take them, and whether they use all
  // cores.
  std::string Text() const {
    std::vector<std::string> lines;
    for (const TaskCommand &command :
         TaskCommands(plan_, task_, paths_, settings_)) {
      lines.push_back(ShellCommand(command));
    }
    if (UsesAllCores(plan_, task_)) lines.emplace_back("uses all cores");
    return absl::StrJoin(lines, "\n");
  }

 private:
  void Set(const std::string &line) {
    const std::vector<std::string> parts = absl::StrSplit(line, '=');
    int number = 0;
    if (parts[0] == "streams") {
      EXPECT_TRUE(absl::SimpleAtoi(parts.at(1), &settings_.streams));
    } else if (parts[0] == "host_target") {
      settings_.host_target = parts.at(1);
    } else if (parts[0] == "records") {
      EXPECT_TRUE(absl::SimpleAtoi(parts.at(1), &number));
      settings_.records = number;
    } else {
      EXPECT_EQ(parts[0], "baseline_records");
      task_.baseline_records = parts.at(1);
    }
  }

  Plan plan_;
  Task task_;
  TaskPaths paths_;
  CommandSettings settings_;
};

TEST(TaskCommands, FollowFromTheStage) {
  CheckGoldenCases("workflows/run/command_cases.txt",
                   [](const std::string &in) {
                     return OneTask(absl::StrSplit(in, '\n')).Text();
                   });
}

}  // namespace
}  // namespace requant::task_command_test
