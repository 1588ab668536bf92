#include "workflows/plan/plan_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace requant::plan_text_test {
namespace {

using testing::HasSubstr;

// Returns one task that makes, and one that verifies what it made.
Plan SmallPlan() {
  Plan plan;
  plan.file.workflow.set_name("w");
  Stage* const stage = plan.file.workflow.add_stage();
  stage->set_name("a");
  stage->mutable_transform();
  stage->mutable_verify();
  plan.file.workflow.add_evaluation()->set_name("e");
  plan.make_task = {0};
  plan.verify_task = {1};
  plan.given_graph = {""};
  plan.left_out_by = {""};
  Task make;
  make.name = "a";
  make.stage = 0;
  make.inputs = {{"graph", -1, "", "in\x1b.pb"}};
  make.outputs = {{"graph", "a\".pb"}};
  Task verify;
  verify.name = "a/verify";
  verify.kind = Task::Kind::kVerify;
  verify.stage = 0;
  verify.evaluation = 0;
  verify.inputs = {{"graph", 0, "graph", ""}};
  verify.outputs = {{"result", "r"}};
  verify.after = {0};
  verify.notes = {"said"};
  plan.tasks = {make, verify};
  return plan;
}

TEST(PlanAsText, SaysWhatIsCachedAndWhyTheRestWouldRun) {
  EXPECT_EQ(PlanAsText(SmallPlan(), {{true, ""}, {false, "it never ran"}}),
            "w\n\n"
            "a         transform the graph  [cached]\n"
            "          reads  in\\x1b.pb\n"
            "          writes a\".pb\n"
            "a/verify  evaluate by \"e\"  [would run: it never ran]\n"
            "          reads  a\".pb\n"
            "          writes r\n"
            "          note   said\n"
            "\n2 tasks, 1 cached, 1 would run\n");
}

TEST(PlanAsText, CountsOnNothingWhenStatesAreNotKnown) {
  EXPECT_THAT(PlanAsText(SmallPlan(), {}),
              HasSubstr("2 tasks, 0 cached, 2 would run\n"));
}

TEST(PlanAsText, OneTaskIsNotTasks) {
  Plan plan = SmallPlan();
  plan.tasks.pop_back();
  EXPECT_THAT(PlanAsText(plan, {}), HasSubstr("\n1 task, 0 cached, 1 would"));
}

TEST(PlanAsText, SaysWhatALimitIs) {
  Plan plan = SmallPlan();
  plan.tasks[1].inputs.push_back({"baseline", -1, "", "b.pb"});
  EXPECT_THAT(PlanAsText(plan, {}),
              HasSubstr("gates  max_accuracy_drop 0.5\n"));
}

TEST(PlanAsText, SaysWhichStagesAreLeftOutOrGiven) {
  Plan plan = SmallPlan();
  plan.tasks.clear();
  plan.left_out_by = {"v"};
  EXPECT_THAT(PlanAsText(plan, {}),
              HasSubstr("a: left out, because variable \"v\" is set\n"));
  plan.left_out_by = {""};
  plan.given_graph = {"my.pb"};
  EXPECT_THAT(PlanAsText(plan, {}),
              HasSubstr("a: not run, its graph is my.pb\n"));
}

TEST(PlanAsDot, KeepsQuotesOutOfLabels) {
  EXPECT_EQ(PlanAsDot(SmallPlan(), {{true, ""}, {false, ""}}),
            "digraph \"w\" {\n  rankdir=TB;\n"
            "  node [shape=box, style=rounded];\n"
            "  t0 [label=\"a\\ntransform the graph\", color=gray, "
            "fontcolor=gray];\n"
            "  t1 [label=\"a/verify\\nevaluate by 'e'\", shape=ellipse];\n"
            "  t0 -> t1 [label=\"a'.pb\"];\n"
            "}\n");
}

TEST(PlanAsMermaid, DrawsWaitingWithoutReadingAsDots) {
  Plan plan = SmallPlan();
  plan.tasks[1].inputs.clear();
  EXPECT_EQ(PlanAsMermaid(plan, {}),
            "flowchart TD\n"
            "  t0[\"a<br>transform the graph\"]\n"
            "  t1([\"a/verify<br>evaluate by 'e'\"])\n"
            "  t0 -.-> t1\n");
}

TEST(PlanAsJson, HasStatesWhenTheyAreKnown) {
  EXPECT_THAT(PlanAsJson(SmallPlan(), {{true, ""}, {false, "it never ran"}}),
              HasSubstr("\"cached\": false, \"why\": \"it never ran\""));
  EXPECT_THAT(PlanAsJson(SmallPlan(), {}), Not(HasSubstr("\"cached\"")));
}

}  // namespace
}  // namespace requant::plan_text_test
