#ifndef REQUANT_WORKFLOWS_LANGUAGE_STAGE_PARTS_H_
#define REQUANT_WORKFLOWS_LANGUAGE_STAGE_PARTS_H_

// What each kind of stage reads and makes. MakesGraph, OutputsOf, InputsOf,
// PathsOf and RecordsOf are for stages that have a kind.

#include <string>
#include <utility>
#include <vector>

#include "base/message/text_proto.h"
#include "workflows/workflow.pb.h"

namespace requant {

// The field of Stage.kind that is set, such as "transform"; "" when none is.
std::string StageKind(const Stage& stage);

// All of them.
std::vector<std::string> StageKinds();

// Whether the stage makes a graph: freeze, transform, quantize or convert.
bool MakesGraph(const Stage& stage);

// The stage's verification: its own, or that of an EvaluateStage; null: none.
const Verify* VerifyOf(const Stage& stage);
// Where that is; only for a stage that has one.
FieldPlaces VerifyPlaces(const Stage& stage, const FieldPlaces& places);

struct StageOutput {
  // As of TaskOutput.
  std::string role;
  // As the stage names it, or made from the stage's name.
  std::string file;
  int line = 0;
};

// What making the stage's outputs leaves; nothing for stages that only judge.
std::vector<StageOutput> OutputsOf(const Stage& stage,
                                   const FieldPlaces& places);

struct StageInput {
  // As of TaskInput.
  std::string role;
  const Input* input;
  FieldPlaces places;
  // Roles of outputs that fit when the input names none, best first; empty:
  // what a transform reads may be anything.
  std::vector<std::string> fitting;
};

// What making the stage's outputs reads, except records; for an EvaluateStage
// and a CompareStage what judging reads.
std::vector<StageInput> InputsOf(const Stage& stage, const FieldPlaces& places);

// What the stage reads by a path that is no Input: a role and the path.
std::vector<std::pair<std::string, std::string>> PathsOf(const Stage& stage);

// The records that the stage itself reads; null: none.
const Records* RecordsOf(const Stage& stage);
FieldPlaces RecordsPlaces(const Stage& stage, const FieldPlaces& places);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_LANGUAGE_STAGE_PARTS_H_
