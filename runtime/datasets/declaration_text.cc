#include "runtime/datasets/declaration_text.h"

#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/text/printable.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"
#include "runtime/datasets/dataset.pb.h"

namespace requant {
namespace {

// Returns the sentence as lines of a comment.
std::string CommentText(std::string_view sentence) {
  std::string lines, text;
  AppendWrapped(Printable(sentence), 2, &lines);
  for (std::string_view line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    absl::StrAppend(&text, "#", line.substr(1), "\n");
  }
  return text;
}

// Appends a message field of `spec`, each message on a line of its own.
void AppendField(const DatasetSpec& spec, int number, std::string* text) {
  const auto* field = DatasetSpec::descriptor()->FindFieldByNumber(number);
  const auto* reflection = DatasetSpec::GetReflection();
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  printer.SetUseShortRepeatedPrimitives(true);
  const auto append = [&](const google::protobuf::Message& message) {
    std::string fields;
    printer.PrintToString(message, &fields);
    absl::StripTrailingAsciiWhitespace(&fields);
    absl::StrAppend(text, field->name(), " { ", fields, " }\n");
  };
  if (!field->is_repeated()) {
    if (reflection->HasField(spec, field)) {
      append(reflection->GetMessage(spec, field));
    }
    return;
  }
  for (int i = 0; i < reflection->FieldSize(spec, field); ++i) {
    append(reflection->GetRepeatedMessage(spec, field, i));
  }
}

// Appends what the sentences say of a field.
void AppendNotes(const std::vector<GuessNote>& notes, int field,
                 std::string_view start, std::string* text) {
  for (const GuessNote& note : notes) {
    if (note.field != field) continue;
    *text += CommentText(absl::StrCat(start, note.text));
  }
}

}  // namespace

std::string DeclarationText(const GuessedDataset& guessed) {
  std::string text =
      "# proto-file: runtime/datasets/dataset.proto\n"
      "# proto-message: requant.DatasetSpec\n"
      "# docs/datasets.md explains the fields.\n";
  const auto add = [&](int field, std::string_view help) {
    absl::StrAppend(&text, "\n", CommentText(help));
    AppendNotes(guessed.notes, field, "Guessed: ", &text);
    AppendNotes(guessed.gaps, field, "To fill in: ", &text);
    AppendField(
        guessed.spec,
        field == GuessNote::kSource ? guessed.spec.source_case() : field,
        &text);
  };
  add(GuessNote::kSource,
      "Where the records are; paths start at this file's folder.");
  add(DatasetSpec::kInputFieldNumber,
      "Which features of a record feed which inputs of the model, and the "
      "shape "
      "of one record.");
  if (guessed.spec.constant_size() > 0) {
    add(DatasetSpec::kConstantFieldNumber, "Inputs that are always the same.");
  }
  add(DatasetSpec::kLabelFieldNumber, "What the prediction is compared with.");
  if (!guessed.spec.has_label()) {
    text += "# label { feature: \"NAME\" dtype: \"int64\" }\n";
  }
  add(DatasetSpec::kPredictionFieldNumber,
      "The output that is judged. One value per record is taken as the "
      "probability of class 1, unless it is declared as a number: kind: "
      "VALUE.");
  return text;
}

}  // namespace requant
