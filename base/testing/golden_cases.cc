#include "base/testing/golden_cases.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace requant {
namespace {

struct GoldenCase {
  int line = 0;
  std::string title;
  std::vector<std::string> input;
  std::vector<std::string> output;
};

std::vector<GoldenCase> ReadCases(const std::string& path) {
  std::ifstream file(path);
  std::vector<GoldenCase> cases;
  std::vector<std::string>* part = nullptr;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (absl::StartsWith(line, "=== ")) {
      GoldenCase& added = cases.emplace_back();
      added.line = number;
      added.title = line;
      part = &added.input;
    } else if (line == "---") {
      part = &cases.back().output;
    } else if (part != nullptr) {
      part->push_back(line);
    }
  }
  return cases;
}

}  // namespace

void CheckGoldenCases(
    const std::string& path,
    const std::function<std::string(const std::string& input)>& output_of) {
  const std::vector<GoldenCase> cases = ReadCases(path);
  EXPECT_FALSE(cases.empty()) << path;
  std::string written;
  for (const GoldenCase& one : cases) {
    const std::string output = output_of(absl::StrJoin(one.input, "\n"));
    EXPECT_EQ(output, absl::StrJoin(one.output, "\n"))
        << path << ":" << one.line << ": " << one.title;
    absl::StrAppend(&written, one.title, "\n");
    for (const std::string& line : one.input) {
      absl::StrAppend(&written, line, "\n");
    }
    absl::StrAppend(&written, "---\n", output, output.empty() ? "" : "\n");
  }
  const char* const folder = std::getenv("REQUANT_WRITE_CASES");
  if (folder == nullptr) return;
  std::ofstream(absl::StrCat(folder, path.substr(path.rfind('/')))) << written;
}

std::map<std::string, std::string> TakeSettings(const std::string& folder,
                                                std::string* input) {
  constexpr char kSet[] = "--set ";
  std::map<std::string, std::string> settings;
  while (absl::StartsWith(*input, kSet)) {
    const std::string line = input->substr(0, input->find('\n'));
    const size_t start = sizeof(kSet) - 1, equals = line.find('=');
    settings[line.substr(start, equals - start)] =
        absl::StrReplaceAll(line.substr(equals + 1), {{"T/", folder}});
    input->erase(0, line.size() + 1);
  }
  return settings;
}

}  // namespace requant
