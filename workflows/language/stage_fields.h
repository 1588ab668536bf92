#ifndef REQUANT_WORKFLOWS_LANGUAGE_STAGE_FIELDS_H_
#define REQUANT_WORKFLOWS_LANGUAGE_STAGE_FIELDS_H_

// What there is to know of each kind of stage, as data: which fields are read,
// written or told to a program, and what they may be. Checks, inputs, outputs
// and command lines follow from these tables.

#include <optional>
#include <string>
#include <vector>

#include "base/message/text_proto.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "workflows/workflow.pb.h"

namespace requant {

// An argument of a program, and the field of the stage that it comes from. One
// whose field is inside a message that the stage does not set does not count.
struct StageField {
  enum class Kind {
    // The word `flag`; with a field only if that is set.
    kConstant,
    // A text, or several, joined by commas.
    kValue,
    // A value that may be "host".
    kTarget,
    // The transforms, with the paths of the stage's files in them.
    kTransforms,
    // The inputs of `role`, one flag for each.
    kInput,
    // Inputs by the names that the transforms have for them; no argument.
    kFiles,
    // What is read by a path that is no Input.
    kPath,
    kOutput,
    // How many batches run side by side.
    kStreams,
    // No argument: what the kind needs (`needed`).
    kNeed,
  };
  enum class Check { kNone, kWord, kCount, kWhole, kAbove };

  Kind kind;
  // Below the kind's message, such as "calibrated.ranges"; "": there is none,
  // and the argument is what the task has in `role`.
  std::string field;
  // "": a word behind all flags. ">": of an output, what the program prints.
  std::string flag;
  // As of TaskInput and TaskOutput.
  std::string role;

  // An input that may be missing, or an output that is.
  bool optional = false;
  // The flag is there even if the output is not: without a name the program
  // would write it under its own.
  bool even_empty = false;
  // What an output's name ends with when the stage gives none.
  std::string ending;
  // The field does not give the output's name, only its line.
  bool unnamed = false;
  // As of StageInput.
  std::vector<std::string> fitting;

  Check check = Check::kNone;
  std::vector<std::string> words;
  double above = 0;
  // The sentence when the field, or the oneof, is not set, and the field whose
  // line it is told on; "": need not be.
  std::string needed;
  std::string needed_at;
  // A field beside it without which it means nothing.
  std::string goes_with;
};

// One program that a stage runs.
struct StageStep {
  // As requant's command: "transform".
  std::string command;
  std::vector<StageField> fields;
};

// A way in which stages of a kind work. Of several forms the first counts whose
// field `when` is set, or else the last.
struct StageForm {
  // The field of Stage.kind.
  std::string kind;
  std::string when;
  // What it does, in a few words.
  std::string summary;
  std::vector<StageStep> steps;
};

const std::vector<StageForm>& StageForms();

// Only for stages that have a kind.
const StageForm& FormOf(const Stage& stage);
// The message of its kind.
const google::protobuf::Message& KindMessage(const Stage& stage);

// The arguments of `requant evaluate` by which a graph is judged, from a
// CompareStage.
const std::vector<StageField>& JudgingFields();

// A field in the message that it is in. The field is null for a oneof, and for
// the path "".
struct FoundField {
  const google::protobuf::Message* message;
  const google::protobuf::FieldDescriptor* field;
  const google::protobuf::OneofDescriptor* oneof;

  bool IsSet() const;
  // Of a field of type bytes: each of a repeated one, or one, set or not. A
  // FixedRange is as `requant convert --ranges` takes it, Logging as
  // `requant transform --transforms` does. None of other messages.
  std::vector<std::string> Texts() const;
  // All of them, joined by commas.
  std::string Text() const;
};

// Nothing if a message around the field is not set, or another field of its
// oneof is.
std::optional<FoundField> FindField(const google::protobuf::Message& message,
                                    const std::string& path);

// The rows of the stage's form that count, and their fields.
struct StageRow {
  const StageField* row;
  FoundField found;
};
std::vector<StageRow> RowsOf(const Stage& stage);

// The places of the message that a field is in, and the field's own name.
FieldPlaces PlacesAround(const FieldPlaces& places, const std::string& path);
std::string LastName(const std::string& path);

// Whether it is read by a path that is no Input (StageField::Kind::kPath).
bool IsStagePath(const google::protobuf::FieldDescriptor* field);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_LANGUAGE_STAGE_FIELDS_H_
