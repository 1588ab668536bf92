#include "tests/support/workflow_runs.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files/file.h"
#include "re2/re2.h"

namespace requant {

std::vector<std::string> SmallRun(const std::string& work_dir,
                                  const std::string& out,
                                  const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"run",
                                        "workflows/wide_deep.textproto",
                                        "--set",
                                        "eval_records=4000",
                                        "--set",
                                        "calibration_records=4096",
                                        absl::StrCat("--work_dir=", work_dir),
                                        absl::StrCat("--out=", out)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

ProgramRun RunSmall(const std::string& work_dir, const std::string& out,
                    const std::vector<std::string>& more) {
  return RunProgram(kRequant, SmallRun(work_dir, out, more));
}

std::set<std::string> TasksDone(const std::string& error) {
  static const RE2 kDone("^[0-9:]{8} (\\S+)  done in ");
  std::set<std::string> tasks;
  for (const std::string_view line : absl::StrSplit(error, '\n')) {
    std::string task;
    if (RE2::PartialMatch(line, kDone, &task)) tasks.insert(task);
  }
  return tasks;
}

std::map<std::string, std::string> GraphsAndRanges(const std::string& out) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : std::filesystem::directory_iterator(out)) {
    const std::string name = entry.path().filename().string();
    // Figures have times in them.
    if (absl::EndsWith(name, ".evaluation.pb") ||
        absl::EndsWith(name, ".benchmark.pb")) {
      continue;
    }
    if (absl::EndsWith(name, ".pb") || absl::EndsWith(name, ".ranges")) {
      const auto content = ReadFile(entry.path().string());
      EXPECT_TRUE(content.ok()) << content.status();
      if (content.ok()) contents[name] = *content;
    }
  }
  return contents;
}

}  // namespace requant
