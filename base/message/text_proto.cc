#include "base/message/text_proto.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/text/printable.h"
#include "google/protobuf/io/tokenizer.h"

namespace requant {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// At most this many mistakes are reported.
constexpr size_t kMostProblems = 100;

class TextProtoErrors : public google::protobuf::io::ErrorCollector {
 public:
  using Report =
      std::function<void(int line, int column, std::string_view message)>;

  TextProtoErrors(const Report& report, bool warnings_too)
      : report_(report), warnings_too_(warnings_too) {}

  void RecordError(int line, google::protobuf::io::ColumnNumber column,
                   absl::string_view message) override {
    report_(line + 1, column + 1, message);
  }
  // Warnings are allowed unknown fields, or else deprecated spellings and the
  // like, which can be ignored.
  void RecordWarning(int line, google::protobuf::io::ColumnNumber column,
                     absl::string_view message) override {
    if (warnings_too_) RecordError(line, column, message);
  }

 private:
  const Report& report_;
  const bool warnings_too_;
};

}  // namespace

FieldPlaces FieldPlaces::Nested(const std::string& field, int index) const {
  const FieldDescriptor* const descriptor = type_->FindFieldByName(field);
  return FieldPlaces(
      descriptor->message_type(),
      tree_ == nullptr ? nullptr : tree_->GetTreeForNested(descriptor, index),
      Line(field, index));
}

int FieldPlaces::Line(const std::string& field, int index) const {
  if (tree_ == nullptr) return line_;
  const FieldDescriptor* const descriptor = type_->FindFieldByName(field);
  if (descriptor->is_repeated() && index < 0) index = 0;
  const int line = tree_->GetLocation(descriptor, index).line;
  return line < 0 ? line_ : line + 1;
}

void FileProblems::Add(int line, std::string_view sentence) {
  if (full()) {
    ++more_;
    return;
  }
  std::pair<int, std::string> problem(line, Printable(sentence));
  if (std::find(problems_.begin(), problems_.end(), problem) ==
      problems_.end()) {
    problems_.push_back(std::move(problem));
  }
}

bool FileProblems::full() const { return problems_.size() >= kMostProblems; }

absl::Status FileProblems::status() const {
  if (problems_.empty()) return absl::OkStatus();
  std::vector<std::pair<int, std::string>> sorted = problems_;
  std::stable_sort(
      sorted.begin(), sorted.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  const std::string file = Printable(file_);
  std::string text =
      absl::StrJoin(sorted, "\n", [&](std::string* out, const auto& problem) {
        absl::StrAppend(out, file);
        if (problem.first > 0) absl::StrAppend(out, ":", problem.first);
        absl::StrAppend(out, ": ", problem.second);
      });
  if (more_ > 0) {
    absl::StrAppend(&text, "\n", file, ": and ", more_, " more mistakes");
  }
  return absl::InvalidArgumentError(text);
}

bool ParseTextProto(
    const std::string& text, const TextProtoOptions& options,
    const std::function<void(int line, int column, std::string_view message)>&
        on_problem,
    google::protobuf::Message* message) {
  TextProtoErrors errors(on_problem, options.passes_unknown_fields);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.WriteLocationsTo(options.places);
  parser.SetRecursionLimit(options.max_nesting);
  parser.AllowUnknownField(options.passes_unknown_fields);
  return parser.ParseFromString(text, message);
}

std::optional<UnknownField> FindUnknownField(std::string_view problem,
                                             const Descriptor& type) {
  // A match reads 'Message type "requant.Stage" has no field named "sumary".'
  const std::vector<std::string_view> parts = absl::StrSplit(problem, '"');
  if (parts.size() < 4 || !absl::StrContains(parts[2], "no field named")) {
    return std::nullopt;
  }
  const Descriptor* const around =
      type.file()->pool()->FindMessageTypeByName(std::string(parts[1]));
  if (around == nullptr) return std::nullopt;
  UnknownField unknown;
  unknown.name = std::string(parts[3]);
  unknown.sentence =
      absl::StrCat(around->name(), " has no field \"", unknown.name, "\"");
  for (int i = 0; i < around->field_count(); ++i) {
    unknown.known.emplace_back(around->field(i)->name());
  }
  return unknown;
}

}  // namespace requant
