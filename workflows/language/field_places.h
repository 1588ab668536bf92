#ifndef REQUANT_WORKFLOWS_LANGUAGE_FIELD_PLACES_H_
#define REQUANT_WORKFLOWS_LANGUAGE_FIELD_PLACES_H_

// Mistakes in a text file of a protocol buffer, told with the lines they are
// on.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/text_format.h"

namespace requant {

// A message of the file, and where its fields are. Lines count from 1.
class FieldPlaces {
 public:
  using Tree = google::protobuf::TextFormat::ParseInfoTree;

  // Of the whole file.
  FieldPlaces(const google::protobuf::Descriptor* type, const Tree* tree)
      : FieldPlaces(type, tree, 1) {}

  // Of a field that is a message; `index` is that of a repeated one.
  FieldPlaces Nested(const std::string& field, int index = -1) const;

  // The field's line, or the message's own when the text has no such field.
  int Line(const std::string& field, int index = -1) const;
  int line() const { return line_; }

 private:
  FieldPlaces(const google::protobuf::Descriptor* type, const Tree* tree,
              int line)
      : type_(type), tree_(tree), line_(line) {}

  const google::protobuf::Descriptor* type_;
  // Unset when the text has no such message.
  const Tree* tree_;
  int line_;
};

// Collects mistakes, so that all of them are told at once.
class FileProblems {
 public:
  explicit FileProblems(std::string file) : file_(std::move(file)) {}

  // `line` 0 is the file as a whole. The same mistake counts once.
  void Add(int line, std::string_view sentence);

  bool empty() const { return problems_.empty(); }
  // Whether there are more than anyone reads: further ones are only counted,
  // and whoever would search long for a suggestion need not.
  bool full() const;
  // "FILE:LINE: sentence" for each, by line, with line breaks between, and how
  // many more there are; OK when there are none.
  absl::Status status() const;

 private:
  const std::string file_;
  std::vector<std::pair<int, std::string>> problems_;
  int more_ = 0;
};

// "; did you mean \"x\"?" for the nearest candidate, or "".
std::string SuggestName(std::string_view name,
                        const std::vector<std::string>& candidates);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_LANGUAGE_FIELD_PLACES_H_
