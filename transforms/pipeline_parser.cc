#include "transforms/pipeline_parser.h"

#include <cctype>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace requant {
namespace {

bool IsNameCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == ':' ||
         c == '-' || c == '.';
}

class PipelineParser {
 public:
  explicit PipelineParser(std::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<TransformCall>> Parse() {
    std::vector<TransformCall> calls;
    while (SkipBlanks(), !AtEnd()) {
      TransformCall call;
      REQUANT_ASSIGN_OR_RETURN(call.name, Name("the name of a transform"));
      SkipBlanks();
      if (Take('(')) REQUANT_RETURN_IF_ERROR(ParseParameters(&call));
      calls.push_back(std::move(call));
    }
    return calls;
  }

 private:
  absl::Status ParseParameters(TransformCall* call) {
    while (true) {
      SkipBlanks();
      if (Take(')')) return absl::OkStatus();
      if (AtEnd()) {
        return Error(
            absl::StrCat("\")\" to end the parameters of ", call->name));
      }
      REQUANT_ASSIGN_OR_RETURN(
          const std::string name,
          Name(absl::StrCat("a parameter of ", call->name, " or \")\"")));
      SkipBlanks();
      if (!Take('=')) {
        return Error(absl::StrCat("\"=\" after the parameter ", name));
      }
      SkipBlanks();
      REQUANT_ASSIGN_OR_RETURN(std::string value, Value(name));
      call->parameters[name].push_back(std::move(value));
      SkipBlanks();
      Take(',');
    }
  }

  absl::StatusOr<std::string> Name(std::string_view expected) {
    const size_t start = position_;
    while (!AtEnd() && IsNameCharacter(text_[position_])) ++position_;
    if (position_ == start) return Error(expected);
    return std::string(text_.substr(start, position_ - start));
  }

  absl::StatusOr<std::string> Value(std::string_view name) {
    if (Take('"')) return QuotedValue(name);
    const size_t start = position_;
    while (!AtEnd() && text_[position_] != ',' && text_[position_] != ')' &&
           text_[position_] != '(' && text_[position_] != '"' &&
           !std::isspace(static_cast<unsigned char>(text_[position_]))) {
      ++position_;
    }
    if (position_ == start) {
      return Error(absl::StrCat("a value for ", name));
    }
    return std::string(text_.substr(start, position_ - start));
  }

  absl::StatusOr<std::string> QuotedValue(std::string_view name) {
    std::string value;
    while (!AtEnd() && text_[position_] != '"') {
      // A backslash before anything else stands for itself, as in a path.
      const std::string_view rest = text_.substr(position_);
      if (absl::StartsWith(rest, "\\\"") || absl::StartsWith(rest, "\\\\")) {
        ++position_;
      }
      value.push_back(text_[position_++]);
    }
    if (!Take('"')) {
      return Error(absl::StrCat("a closing quote after the value of ", name));
    }
    return value;
  }

  void SkipBlanks() {
    while (!AtEnd() &&
           (std::isspace(static_cast<unsigned char>(text_[position_])) ||
            text_[position_] == '\\')) {
      ++position_;
    }
  }

  bool AtEnd() const { return position_ >= text_.size(); }

  bool Take(char c) {
    if (AtEnd() || text_[position_] != c) return false;
    ++position_;
    return true;
  }

  absl::Status Error(std::string_view expected) const {
    constexpr size_t kShown = 24;
    const std::string found =
        AtEnd()
            ? "the end"
            : absl::StrCat("\"", text_.substr(position_, kShown),
                           position_ + kShown < text_.size() ? "…\"" : "\"");
    return absl::InvalidArgumentError(
        absl::StrCat("in the transforms, at character ", position_ + 1,
                     ": expected ", expected, ", found ", found));
  }

  std::string_view text_;
  size_t position_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<TransformCall>> ParsePipeline(
    std::string_view text) {
  return PipelineParser(text).Parse();
}

std::vector<std::string> ParseNameList(std::string_view text) {
  constexpr std::string_view kAround = " \t\r\n\\";
  std::vector<std::string> names;
  for (std::string_view name : absl::StrSplit(text, ',')) {
    const size_t first = name.find_first_not_of(kAround);
    if (first == std::string_view::npos) continue;
    const size_t last = name.find_last_not_of(kAround);
    names.emplace_back(name.substr(first, last - first + 1));
  }
  return names;
}

}  // namespace requant
