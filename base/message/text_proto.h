#ifndef REQUANT_BASE_MESSAGE_TEXT_PROTO_H_
#define REQUANT_BASE_MESSAGE_TEXT_PROTO_H_

// Text files of protocol buffers, read so that mistakes in them are reported
// with their lines.

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

// A message of the file, and where its fields are. Lines count from 1.
class FieldPlaces {
 public:
  using Tree = google::protobuf::TextFormat::ParseInfoTree;

  // Holds the places in the whole file. `tree` is unset when the text has no
  // such message; `line` is the line of fields that the text does not have.
  FieldPlaces(const google::protobuf::Descriptor* type, const Tree* tree,
              int line = 1)
      : type_(type), tree_(tree), line_(line) {}

  // Returns the places in a field that is a message; `index` is that of a
  // repeated one.
  FieldPlaces Nested(const std::string& field, int index = -1) const;

  // Returns the field's line, or the message's own when the text has no such
  // field.
  int Line(const std::string& field, int index = -1) const;
  int line() const { return line_; }

 private:
  const google::protobuf::Descriptor* type_;
  const Tree* tree_;
  int line_;
};

// Collects mistakes, so that all of them are reported at once.
class FileProblems {
 public:
  explicit FileProblems(std::string file) : file_(std::move(file)) {}

  // Adds a mistake, once if repeated; `line` 0 is the file as a whole.
  void Add(int line, std::string_view sentence);

  bool empty() const { return problems_.empty(); }
  // Returns whether there are more than anyone reads: further ones are only
  // counted, and it is not worth searching long for a suggestion.
  bool full() const;
  // Returns "FILE:LINE: sentence" for each, by line, with line breaks between,
  // and how many more there are; OK when there are none.
  absl::Status status() const;

 private:
  const std::string file_;
  std::vector<std::pair<int, std::string>> problems_;
  int more_ = 0;
};

struct TextProtoOptions {
  // Messages nested deeper than this are refused; the parser recurses.
  int max_nesting = 20;
  // Goes on after unknown fields, which are problems all the same.
  bool passes_unknown_fields = false;
  // Gets the places of the fields, unless null.
  FieldPlaces::Tree* places = nullptr;
};

// Reads `text` into `message` and calls `on_problem` for each mistake, with
// protobuf's words; line and column count from 1 and are 0 if not known.
// Returns whether there is a message; with a mistake it is not to be used.
bool ParseTextProto(
    const std::string& text, const TextProtoOptions& options,
    const std::function<void(int line, int column, std::string_view message)>&
        on_problem,
    google::protobuf::Message* message);

// A field that a text has and its message has not.
struct UnknownField {
  // "Stage has no field \"sumary\"".
  std::string sentence;
  std::string name;
  // The fields that there are.
  std::vector<std::string> known;
};

// Returns what `problem`, as protobuf words it, says of an unknown field; unset
// if it is about something else. The types are those of the file of `type`.
std::optional<UnknownField> FindUnknownField(
    std::string_view problem, const google::protobuf::Descriptor& type);

}  // namespace requant

#endif  // REQUANT_BASE_MESSAGE_TEXT_PROTO_H_
