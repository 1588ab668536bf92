#include "workflows/language/field_places.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/nearest_name.h"
#include "base/text/printable.h"
#include "google/protobuf/descriptor.h"

namespace requant {

using google::protobuf::FieldDescriptor;

// Told at once.
constexpr size_t kMostProblems = 100;

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

std::string SuggestName(std::string_view name,
                        const std::vector<std::string>& candidates) {
  const std::string nearest = NearestName(name, candidates);
  return nearest.empty() ? ""
                         : absl::StrCat("; did you mean \"", nearest, "\"?");
}

}  // namespace requant
