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

// Returns the table of all kinds (stages.textproto).
const StageTable& Stages();

// Returns the program of a command, or null if it has none.
const Program* FindProgram(std::string_view command);

using StageFields = google::protobuf::RepeatedPtrField<StageField>;

// Returns the form of a stage, which must have a kind.
const StageForm& FormOf(const Stage& stage);
// Returns the message of the stage's kind.
const google::protobuf::Message& KindMessage(const Stage& stage);

// A field and the message that it is in. The field is null for a oneof, and for
// the path "".
struct FoundField {
  const google::protobuf::Message* message;
  const google::protobuf::FieldDescriptor* field;
  const google::protobuf::OneofDescriptor* oneof;

  bool IsSet() const;
  // Returns the values of a field of type bytes: all of a repeated one, or a
  // single one, set or not. Returns a FixedRange as `requant convert --ranges`
  // takes it, Logging as `requant transform --transforms` does, and nothing for
  // other messages.
  std::vector<std::string> Texts() const;
  // Returns Texts(), joined by commas.
  std::string Text() const;
};

// Finds a field. Returns nothing if a message around it is not set, or another
// field of its oneof is.
std::optional<FoundField> FindField(const google::protobuf::Message& message,
                                    const std::string& path);

// A row of the stage's form that counts, and its field.
struct StageRow {
  const StageField* row;
  FoundField found;
};
std::vector<StageRow> RowsOf(const Stage& stage);

// Return the places of the message around a field, and the field's own name.
FieldPlaces PlacesAround(const FieldPlaces& places, const std::string& path);
std::string LastName(const std::string& path);

// Returns whether the field is a path that is not an Input (StageField.PATH).
bool IsStagePath(const google::protobuf::FieldDescriptor* field);

// The functions below describe a stage as a whole. For MakesGraph, OutputsOf,
// InputsOf, PathsOf and RecordsOf it must have a kind.

// Returns the field of Stage.kind that is set, such as "transform", or "".
std::string StageKind(const Stage& stage);

// Returns all kinds.
std::vector<std::string> StageKinds();

// Returns whether the stage freezes, transforms, quantizes or converts a graph.
bool MakesGraph(const Stage& stage);

// Returns its own verification, or that of an EvaluateStage, or else null.
const Verify* VerifyOf(const Stage& stage);
// Returns where that is. The stage must have one.
FieldPlaces VerifyPlaces(const Stage& stage, const FieldPlaces& places);

struct StageOutput {
  // The role in TaskOutput.
  std::string role;
  // The name that the stage gives, or one made from the stage's name.
  std::string file;
  int line = 0;
};

// Returns the outputs that the stage makes; one that only judges has none.
std::vector<StageOutput> OutputsOf(const Stage& stage,
                                   const FieldPlaces& places);

struct StageInput {
  // The role in TaskInput.
  std::string role;
  const Input* input;
  FieldPlaces places;
  // Roles of outputs that fit if the input names none, best first. If empty,
  // all roles fit, as for a transform's files.
  std::vector<std::string> fitting;
};

// Returns what making the stage's outputs reads, except records; for an
// EvaluateStage or a CompareStage, what judging reads.
std::vector<StageInput> InputsOf(const Stage& stage, const FieldPlaces& places);

// Returns roles and paths of what the stage reads by a path, not an Input.
std::vector<std::pair<std::string, std::string>> PathsOf(const Stage& stage);

// Returns the records that the stage itself reads, or null if there are none.
const Records* RecordsOf(const Stage& stage);
FieldPlaces RecordsPlaces(const Stage& stage, const FieldPlaces& places);

// Returns `transforms` of a TransformStage with paths in place of its files'
// names: "${log}" becomes paths.at("log"), in double quotes unless it is in
// quotes already, and "$${" becomes "${". A path may contain anything.
std::string FillInFiles(const std::string& transforms,
                        const std::map<std::string, std::string>& paths);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_LANGUAGE_STAGE_FIELDS_H_
