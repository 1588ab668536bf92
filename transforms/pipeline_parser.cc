#include "transforms/pipeline_parser.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace requant {
namespace {

class PipelineParser {
 public:
  explicit PipelineParser(std::string_view text)
      : size_(text.size()), rest_(text) {}

  absl::StatusOr<std::vector<TransformCall>> Parse() {
    std::vector<TransformCall> calls;
    while (SkipBlanks(), !rest_.empty()) {
      TransformCall call;
      REQUANT_ASSIGN_OR_RETURN(call.name, Name("the name of a transform"));
      if (Take("(")) REQUANT_RETURN_IF_ERROR(ParseParameters(&call));
      calls.push_back(std::move(call));
    }
    return calls;
  }

 private:
  absl::Status ParseParameters(TransformCall* call) {
    while (!Take(")")) {
      if (rest_.empty()) {
        return Error(
            absl::StrCat("\")\" to end the parameters of ", call->name));
      }
      REQUANT_ASSIGN_OR_RETURN(
          const std::string name,
          Name(absl::StrCat("a parameter of ", call->name, " or \")\"")));
      if (!Take("=")) {
        return Error(absl::StrCat("\"=\" after the parameter ", name));
      }
      REQUANT_ASSIGN_OR_RETURN(std::string value, Value(name));
      call->parameters[name].push_back(std::move(value));
      Take(",");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Name(std::string_view expected) {
    std::string name = TakeWhile([](char c) {
      return absl::ascii_isalnum(c) || absl::StrContains("_:-.", c);
    });
    if (name.empty()) return Error(expected);
    return name;
  }

  absl::StatusOr<std::string> Value(std::string_view name) {
    if (Take("\"")) return QuotedValue(name);
    std::string value = TakeWhile([](char c) {
      return !absl::ascii_isspace(c) && !absl::StrContains(",()\"", c);
    });
    if (value.empty()) return Error(absl::StrCat("a value for ", name));
    return value;
  }

  absl::StatusOr<std::string> QuotedValue(std::string_view name) {
    std::string value;
    while (!rest_.empty() && rest_[0] != '"') {
      // A backslash before any other character stands for itself, as in a path.
      if (absl::StartsWith(rest_, "\\\"") || absl::StartsWith(rest_, "\\\\")) {
        rest_.remove_prefix(1);
      }
      value.push_back(rest_[0]);
      rest_.remove_prefix(1);
    }
    if (!absl::ConsumePrefix(&rest_, "\"")) {
      return Error(absl::StrCat("a closing quote after the value of ", name));
    }
    return value;
  }

  template <typename Wanted>
  std::string TakeWhile(const Wanted& wanted) {
    std::string taken(rest_.begin(),
                      std::find_if_not(rest_.begin(), rest_.end(), wanted));
    rest_.remove_prefix(taken.size());
    return taken;
  }

  void SkipBlanks() {
    TakeWhile([](char c) { return absl::ascii_isspace(c) || c == '\\'; });
  }

  // Skips blanks, then consumes `text` if it comes next.
  bool Take(std::string_view text) {
    SkipBlanks();
    return absl::ConsumePrefix(&rest_, text);
  }

  absl::Status Error(std::string_view expected) const {
    constexpr size_t kShown = 24;
    const std::string found =
        rest_.empty() ? "the end"
                      : absl::StrCat("\"", rest_.substr(0, kShown),
                                     kShown < rest_.size() ? "…\"" : "\"");
    return absl::InvalidArgumentError(absl::StrCat(
        "in the transforms, at character ", size_ - rest_.size() + 1,
        ": expected ", expected, ", found ", found));
  }

  const size_t size_;
  // The text that has not been parsed yet.
  std::string_view rest_;
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
