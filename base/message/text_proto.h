#ifndef REQUANT_BASE_MESSAGE_TEXT_PROTO_H_
#define REQUANT_BASE_MESSAGE_TEXT_PROTO_H_

// Reads protobuf text files and reports mistakes with their line numbers.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"

namespace requant {

// The positions of a message's fields in the file. Lines count from 1.
class FieldPlaces {
 public:
  using Tree = google::protobuf::TextFormat::ParseInfoTree;

  // Holds the positions in the whole file. `tree` is null when the text lacks
  // the message; `line` is the line given for fields that the text lacks.
  FieldPlaces(const google::protobuf::Descriptor* type, const Tree* tree,
              int line = 1)
      : type_(type), tree_(tree), line_(line) {}

  // Returns the positions in a submessage; `index` is for repeated fields.
  FieldPlaces Nested(const std::string& field, int index = -1) const;

  // Returns the field's line, or the message's line when the text lacks the
  // field.
  int Line(const std::string& field, int index = -1) const;
  int line() const { return line_; }

 private:
  const google::protobuf::Descriptor* type_;
  const Tree* tree_;
  int line_;
};

// Collects mistakes so that all of them can be reported together.
class FileProblems {
 public:
  explicit FileProblems(std::string file) : file_(std::move(file)) {}

  // Adds a mistake unless it is a duplicate; `line` 0 means the whole file.
  void Add(int line, std::string_view sentence);

  bool empty() const { return problems_.empty(); }
  // Returns whether there are more than can be shown: further ones are only
  // counted, so that a long search for a suggestion is not worthwhile.
  bool full() const;
  // Returns an error with a line "FILE:LINE: sentence" for each mistake, sorted
  // by line, and the number of omitted ones, or OK when there are none.
  absl::Status status() const;

 private:
  const std::string file_;
  std::vector<std::pair<int, std::string>> problems_;
  int more_ = 0;
};

struct TextProtoOptions {
  // Messages nested deeper than this are refused because the parser recurses.
  int max_nesting = 20;
  // Continues after unknown fields, which are reported all the same.
  bool passes_unknown_fields = false;
  // Receives the positions of the fields unless it is null.
  FieldPlaces::Tree* places = nullptr;
};

// Parses `text` into `message` and calls `on_problem` with protobuf's words for
// each mistake; line and column count from 1 and are 0 if unknown. Returns
// whether there is a message, which must not be used if there were mistakes.
bool ParseTextProto(
    const std::string& text, const TextProtoOptions& options,
    const std::function<void(int line, int column, std::string_view message)>&
        on_problem,
    google::protobuf::Message* message);

// A field in the text that its message type lacks.
struct UnknownField {
  // A sentence such as "Stage has no field \"sumary\"".
  std::string sentence;
  std::string name;
  // The names of the type's fields.
  std::vector<std::string> known;
};

// Returns the unknown field that protobuf's message `problem` describes, if it
// does. Types are looked up in the file of `type`.
std::optional<UnknownField> FindUnknownField(
    std::string_view problem, const google::protobuf::Descriptor& type);

}  // namespace requant

#endif  // REQUANT_BASE_MESSAGE_TEXT_PROTO_H_
