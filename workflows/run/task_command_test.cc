#include "workflows/run/task_command.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "google/protobuf/text_format.h"

namespace requant::task_command_test {
namespace {

// A plan of one stage and one task, whose inputs have the paths "<role>.in" and
// whose outputs "<role>.out".
class OneTask {
 public:
  OneTask(const std::string& workflow, Task::Kind kind,
          const std::vector<std::string>& inputs,
          const std::vector<std::string>& outputs) {
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        workflow, &plan_.file.workflow));
    task_.kind = kind;
    task_.stage = kind == Task::Kind::kBaseline ? -1 : 0;
    task_.evaluation = plan_.file.workflow.evaluation_size() > 0 ? 0 : -1;
    for (const std::string& role : inputs) {
      TaskInput input;
      input.role = role;
      task_.inputs.push_back(input);
      paths_.inputs.push_back(role + ".in");
    }
    for (const std::string& role : outputs) {
      task_.outputs.push_back({role, ""});
      paths_.outputs.push_back(role + ".out");
    }
  }

  // The commands as a shell would take them.
  std::vector<std::string> Commands(const CommandSettings& settings = {}) {
    const auto commands = TaskCommands(plan_, task_, paths_, settings);
    EXPECT_TRUE(commands.ok()) << commands.status();
    std::vector<std::string> lines;
    for (const TaskCommand& command : *commands) {
      lines.push_back(ShellCommand(command));
    }
    return lines;
  }
  OneTask& WithBaselineRecords(const std::string& records) {
    task_.baseline_records = records;
    return *this;
  }
  bool UsesAllCores() { return requant::UsesAllCores(plan_, task_); }
  bool IsRefused() { return !TaskCommands(plan_, task_, paths_, {}).ok(); }

 private:
  Plan plan_;
  Task task_;
  TaskPaths paths_;
};

OneTask Make(const std::string& stage, const std::vector<std::string>& inputs,
             const std::vector<std::string>& outputs) {
  return OneTask("stage { name: 's' " + stage + "}", Task::Kind::kMake, inputs,
                 outputs);
}

using Lines = std::vector<std::string>;

TEST(TaskCommands, LeaveOutFlagsThatAreNotSet) {
  EXPECT_EQ(
      Make("dataset { synthesize { rows: '10' } }", {}, {"data"}).Commands(),
      Lines{"requant dataset synthesize --rows=10 --out=data.out"});
}

TEST(TaskCommands, OfPreprocessingNameEveryFile) {
  EXPECT_EQ(Make("dataset { preprocess { buckets: '7' } }", {"data", "ranges"},
                 {"data"})
                .Commands(),
            Lines{"requant dataset preprocess --ranges=ranges.in --buckets=7 "
                  "--out=data.out data.in"});
}

TEST(TaskCommands, OfSummarizingPrintIntoTheOutput) {
  EXPECT_EQ(Make("summarize {}", {"graph"}, {"text"}).Commands(),
            Lines{"requant summarize --in_graph=graph.in > text.out"});
}

TEST(TaskCommands, OfFreezingTakeASavedModelOrACheckpoint) {
  EXPECT_EQ(Make("freeze { saved_model {} output_node: 'a' output_node: 'b' }",
                 {"saved_model"}, {"graph"})
                .Commands(),
            Lines{"requant freeze --input_saved_model_dir=saved_model.in "
                  "--output_node_names=a,b --output_graph=graph.out"});
  EXPECT_EQ(Make("freeze { graph {} }", {"graph", "checkpoint"}, {"graph"})
                .Commands(),
            Lines{"requant freeze --input_graph=graph.in "
                  "--input_checkpoint=checkpoint.in --output_graph=graph.out"});
}

TEST(TaskCommands, OfTransformsPutFilesInPlace) {
  EXPECT_EQ(Make("transform { outputs: 'y' transforms: 'f(file=\"${log}\")' "
                 "file { name: 'log' } }",
                 {"graph", "log"}, {"graph"})
                .Commands(),
            Lines{"requant transform --in_graph=graph.in --out_graph=graph.out "
                  "--outputs=y '--transforms=f(file=\"log.in\")'"});
}

TEST(TaskCommands, OfTransformsLeaveDollarsAlone) {
  EXPECT_EQ(Make("transform { transforms: 'f(file=${log}, x=\"$${log}\")' "
                 "file { name: 'log' } }",
                 {"graph", "log"}, {"graph"})
                .Commands(),
            Lines{"requant transform --in_graph=graph.in --out_graph=graph.out "
                  "'--transforms=f(file=\"log.in\", x=\"${log}\")'"});
}

TEST(TaskCommands, OfQuantizingDependOnWhereRangesComeFrom) {
  EXPECT_EQ(Make("quantize { dynamic {} output_node: 'y' target: 'vnni' }",
                 {"graph"}, {"graph"})
                .Commands(),
            Lines{"requant quantize_graph --input=graph.in --output=graph.out "
                  "--output_node_names=y --target=vnni"});
  EXPECT_EQ(Make("quantize { calibrated { method: 'mse' } output_node: 'y' }",
                 {"graph", "ranges"}, {"graph"})
                .Commands(),
            Lines{"requant quantize --graph=graph.in --ranges=ranges.in "
                  "--output=graph.out --outputs=y --method=mse"});
}

TEST(TaskCommands, SayWhatTheHostIs) {
  CommandSettings settings;
  settings.host_target = "avx2";
  EXPECT_EQ(Make("quantize { dynamic {} target: 'host' }", {"graph"}, {"graph"})
                .Commands(settings),
            Lines{"requant quantize_graph --input=graph.in --output=graph.out "
                  "--target=avx2"});
}

TEST(TaskCommands, OfLoggingRunOneStreamWhateverTheMachine) {
  CommandSettings settings;
  settings.streams = 8;
  EXPECT_EQ(
      Make("calibrate { on { batch_size: '1024' records: '9' } logging { op: "
           "'Min' message: '__min:' } }",
           {"graph", "dataset", "data"}, {"logged_graph", "log", "ranges"})
          .Commands(settings),
      (Lines{"requant transform --in_graph=graph.in "
             "--out_graph=logged_graph.out '--transforms=insert_logging(op=Min,"
             " show_name=true, message=\"__min:\")'",
             "requant evaluate --graph=logged_graph.out --dataset=dataset.in "
             "--data=data.in --batch_size=1024 --records=9 --log_file=log.out",
             "requant parse_log --allow_empty --output=ranges.out log.out"}));
}

TEST(TaskCommands, OfCalibratingDirectly) {
  EXPECT_EQ(Make("calibrate { on { records: '9' } direct { moment_records: '5' "
                 "} }",
                 {"graph", "dataset"}, {"ranges"})
                .Commands(),
            Lines{"requant calibrate --graph=graph.in --dataset=dataset.in "
                  "--max_records=9 --moment_records=5 --output=ranges.out"});
}

constexpr char kVerified[] =
    "evaluation { name: 'e' on { batch_size: '512' records: '9' } "
    "baseline { records: '5' } layer_records: '3' } "
    "stage { name: 's' verify { evaluation: 'e' } }";

TEST(TaskCommands, OfAVerificationReadWhatTheBaselinePredicted) {
  CommandSettings settings;
  settings.streams = 2;
  EXPECT_EQ(
      OneTask(kVerified, Task::Kind::kVerify,
              {"graph", "dataset", "data", "baseline_predictions", "baseline"},
              {"predictions", "result"})
          .Commands(settings),
      Lines{"requant evaluate --graph=graph.in --dataset=dataset.in "
            "--data=data.in --batch_size=512 --records=9 --streams=2 "
            "--threads=1 --result_out=result.out "
            "--predictions_out=predictions.out "
            "--baseline_predictions=baseline_predictions.in "
            "--baseline=baseline.in --layer_records=3"});
}

TEST(TaskCommands, OfAVerificationMayTakeMoreRecords) {
  CommandSettings settings;
  settings.records = 36;
  EXPECT_EQ(
      OneTask(kVerified, Task::Kind::kVerify, {"graph", "dataset"}, {"result"})
          .Commands(settings),
      Lines{"requant evaluate --graph=graph.in --dataset=dataset.in "
            "--batch_size=512 --records=36 --result_out=result.out"});
}

TEST(TaskCommands, OfABaselineHaveItsOwnNumberOfRecords) {
  EXPECT_EQ(OneTask(kVerified, Task::Kind::kBaseline, {"graph", "dataset"},
                    {"predictions", "result"})
                .WithBaselineRecords("7")
                .Commands(),
            Lines{"requant evaluate --graph=graph.in --dataset=dataset.in "
                  "--batch_size=512 --records=7 --result_out=result.out "
                  "--predictions_out=predictions.out"});
}

TEST(TaskCommands, OfAComparisonRunBothGraphs) {
  EXPECT_EQ(
      OneTask("stage { name: 's' compare { layer_records: '3' } }",
              Task::Kind::kVerify, {"graph", "dataset", "baseline"}, {"result"})
          .Commands(),
      Lines{"requant evaluate --graph=graph.in --dataset=dataset.in "
            "--result_out=result.out --baseline=baseline.in "
            "--layer_records=3"});
}

TEST(TaskCommands, OfABenchmarkNameEveryGraph) {
  EXPECT_EQ(Make("benchmark { rounds: '9' seconds: '0.5' }",
                 {"graph", "graph", "dataset"}, {"result"})
                .Commands(),
            Lines{"requant benchmark --graph=graph.in --graph=graph.in "
                  "--dataset=dataset.in --rounds=9 --seconds=0.5 "
                  "--result_out=result.out"});
}

TEST(TaskCommands, OfABenchmarkRunAsEvaluationsDo) {
  CommandSettings settings;
  settings.streams = 8;
  EXPECT_EQ(Make("benchmark { rounds: '9' }", {"graph", "dataset"}, {"result"})
                .Commands(settings),
            Lines{"requant benchmark --graph=graph.in --dataset=dataset.in "
                  "--streams=8 --threads=1 --rounds=9 "
                  "--result_out=result.out"});
}

TEST(TaskCommands, OfABenchmarkOfSavedModelsLeaveTheSettingToTheProgram) {
  CommandSettings settings;
  settings.streams = 8;
  EXPECT_EQ(Make("benchmark { published_name: 'gpt-j' }", {"graph", "dataset"},
                 {"result", "text"})
                .Commands(settings),
            Lines{"requant benchmark --saved_model=graph.in --name=gpt-j "
                  "--dataset=dataset.in --result_out=result.out > text.out"});
}

TEST(TaskCommands, OfABenchmarkOfSavedModelsKeepThePublishedLines) {
  EXPECT_EQ(Make("benchmark { graph {} graph {} published_name: 'gpt-j' }",
                 {"graph", "graph", "dataset"}, {"result", "text"})
                .Commands(),
            Lines{"requant benchmark --saved_model=graph.in "
                  "--saved_model=graph.in --name=gpt-j --dataset=dataset.in "
                  "--result_out=result.out > text.out"});
}

TEST(TaskCommands, OfConvertingWriteNoFilesThatNobodyNamed) {
  EXPECT_EQ(
      Make("convert { variables: 'copy' }", {"saved_model"}, {"graph"})
          .Commands(),
      Lines{"requant convert --saved_model=saved_model.in --out=graph.out "
            "--overwrite --copy=copy --extracted_graph_def= "
            "--converted_graph_def="});
}

TEST(TaskCommands, OfConvertingSayWhereRangesComeFrom) {
  EXPECT_EQ(
      Make("convert { insert_qdq { op: 'MatMul' op: 'Einsum' fixed { min: '-1' "
           "max: '1' } } }",
           {"saved_model"}, {"graph", "converted_graph_def"})
          .Commands(),
      Lines{"requant convert --saved_model=saved_model.in --out=graph.out "
            "--overwrite --extracted_graph_def= "
            "--converted_graph_def=converted_graph_def.out --insert_qdq "
            "--ops=MatMul,Einsum '--ranges=fixed(-1,1)'"});
  EXPECT_EQ(
      Make("convert { insert_qdq { inputs: 'weights' calibrated { method: "
           "'minmax' } } }",
           {"saved_model", "ranges"}, {"graph"})
          .Commands(),
      Lines{"requant convert --saved_model=saved_model.in --out=graph.out "
            "--overwrite --extracted_graph_def= --converted_graph_def= "
            "--insert_qdq --inputs=weights --ranges=ranges.in "
            "--method=minmax"});
}

TEST(TaskCommands, OfCalibratingForConvertNameTheOps) {
  EXPECT_EQ(Make("calibrate { direct { qdq_op: 'MatMul' qdq_op: 'Einsum' "
                 "qdq_inputs: 'both' } }",
                 {"graph", "dataset"}, {"ranges"})
                .Commands(),
            Lines{"requant calibrate --graph=graph.in --dataset=dataset.in "
                  "--qdq_ops=MatMul,Einsum --qdq_inputs=both "
                  "--output=ranges.out"});
}

TEST(TaskCommands, OfADiffTellAShellThatDifferentGraphsAreNoFailure) {
  EXPECT_EQ(
      Make("diff { max_nodes: '0' }", {"before", "after"}, {"text"}).Commands(),
      Lines{"requant diff --max_nodes=0 before.in after.in > text.out || "
            "[ $? = 1 ]"});
}

TEST(TaskCommands, RefuseATaskThatLacksAnInput) {
  EXPECT_TRUE(Make("summarize {}", {}, {"text"}).IsRefused());
}

TEST(UsesAllCores, WhateverRunsGraphs) {
  EXPECT_TRUE(Make("benchmark {}", {}, {}).UsesAllCores());
  EXPECT_TRUE(Make("calibrate { direct {} }", {}, {}).UsesAllCores());
  EXPECT_TRUE(Make("calibrate { logging {} }", {}, {}).UsesAllCores());
  EXPECT_TRUE(Make("quantize { calibrated {} }", {}, {}).UsesAllCores());
  EXPECT_TRUE(OneTask(kVerified, Task::Kind::kVerify, {}, {}).UsesAllCores());
  EXPECT_FALSE(Make("quantize { dynamic {} }", {}, {}).UsesAllCores());
  EXPECT_FALSE(Make("transform {}", {}, {}).UsesAllCores());
}

}  // namespace
}  // namespace requant::task_command_test
