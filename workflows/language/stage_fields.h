#ifndef REQUANT_WORKFLOWS_LANGUAGE_STAGE_FIELDS_H_
#define REQUANT_WORKFLOWS_LANGUAGE_STAGE_FIELDS_H_

// What there is to know of each kind of stage, as data (stage_table.proto):
// which fields are read, written or given to a program, and what they may be.
// Checks, inputs, outputs and command lines follow from these tables.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/message/text_proto.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "workflows/language/stage_table.pb.h"
#include "workflows/workflow.pb.h"

namespace requant {

// Returns all kinds (stages.textproto).
const StageTable& Stages();

// Returns the program of a command; null if the command has none.
const Program* FindProgram(std::string_view command);

using StageFields = google::protobuf::RepeatedPtrField<StageField>;

// Is only for stages that have a kind.
const StageForm& FormOf(const Stage& stage);
// Returns the message of its kind.
const google::protobuf::Message& KindMessage(const Stage& stage);

// A field in the message that it is in. The field is null for a oneof, and for
// the path "".
struct FoundField {
  const google::protobuf::Message* message;
  const google::protobuf::FieldDescriptor* field;
  const google::protobuf::OneofDescriptor* oneof;

  bool IsSet() const;
  // Returns the values of a field of type bytes: each of a repeated one, or
  // one, set or not. Returns a FixedRange as `requant convert --ranges` takes
  // it, Logging as `requant transform --transforms` does, and nothing for other
  // messages.
  std::vector<std::string> Texts() const;
  // Returns all of them, joined by commas.
  std::string Text() const;
};

// Returns nothing if a message around the field is not set, or another field of
// its oneof is.
std::optional<FoundField> FindField(const google::protobuf::Message& message,
                                    const std::string& path);

// The rows of the stage's form that count, and their fields.
struct StageRow {
  const StageField* row;
  FoundField found;
};
std::vector<StageRow> RowsOf(const Stage& stage);

// Return the places of the message around a field, and the field's own name.
FieldPlaces PlacesAround(const FieldPlaces& places, const std::string& path);
std::string LastName(const std::string& path);

// Returns whether it is read by a path that is no Input (StageField.PATH).
bool IsStagePath(const google::protobuf::FieldDescriptor* field);

// What a stage is as a whole. MakesGraph, OutputsOf, InputsOf, PathsOf and
// RecordsOf are for stages that have a kind.

// Returns the field of Stage.kind that is set: "transform"; "" if none is.
std::string StageKind(const Stage& stage);

// Returns all of them.
std::vector<std::string> StageKinds();

// Returns whether it makes a graph: freeze, transform, quantize or convert.
bool MakesGraph(const Stage& stage);

// Returns its own verification, or that of an EvaluateStage; null: none.
const Verify* VerifyOf(const Stage& stage);
// Returns where that is; only for a stage that has one.
FieldPlaces VerifyPlaces(const Stage& stage, const FieldPlaces& places);

struct StageOutput {
  // That of TaskOutput.
  std::string role;
  // The name that the stage gives, or one made from the stage's name.
  std::string file;
  int line = 0;
};

// Returns what making the outputs leaves; nothing for stages that only judge.
std::vector<StageOutput> OutputsOf(const Stage& stage,
                                   const FieldPlaces& places);

struct StageInput {
  // That of TaskInput.
  std::string role;
  const Input* input;
  FieldPlaces places;
  // Roles of outputs that fit when the input names none, best first; empty:
  // what a transform reads may be anything.
  std::vector<std::string> fitting;
};

// Returns what making the stage's outputs reads, except records; for an
// EvaluateStage and a CompareStage what judging reads.
std::vector<StageInput> InputsOf(const Stage& stage, const FieldPlaces& places);

// Returns a role and a path for what the stage reads by a path, not an Input.
std::vector<std::pair<std::string, std::string>> PathsOf(const Stage& stage);

// Returns the records that the stage itself reads; null: none.
const Records* RecordsOf(const Stage& stage);
FieldPlaces RecordsPlaces(const Stage& stage, const FieldPlaces& places);

// Returns `transforms` of a TransformStage with paths for its files' names:
// "${log}" becomes paths.at("log"), in double quotes unless it is in some, and
// "$${" becomes "${". A path may contain anything.
std::string FillInFiles(const std::string& transforms,
                        const std::map<std::string, std::string>& paths);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_LANGUAGE_STAGE_FIELDS_H_
