// Tests that a flipped bit in anything that runs keep is noticed or harmless:
// the next run has the same verdict and figures as if nothing had happened.

#include <cstdio>
#include <filesystem>
#include <random>
#include <set>

#include "absl/strings/match.h"
#include "base/files/file.h"
#include "base/testing/fuzz_rounds.h"
#include "google/protobuf/struct.pb.h"
#include "tests/support/workflow_runs.h"
#include "workflows/testing/json_value.h"

namespace requant::bit_flip_test {
namespace {

namespace fs = std::filesystem;
using google::protobuf::Value;

constexpr int kGateFailed = 3;

// Returns whether a member of results.json says when, how fast or how often
// something was done, which differs between runs.
bool IsOfTime(const std::string& name) {
  static const auto* const names = new std::set<std::string>{
      "started", "start", "state", "timing", "notes", "work_seconds"};
  return names->count(name) > 0 || absl::StrContains(name, "seconds") ||
         absl::StrContains(name, "per_second");
}

void RemoveTimes(Value* value) {
  if (value->has_list_value()) {
    for (Value& element : *value->mutable_list_value()->mutable_values()) {
      RemoveTimes(&element);
    }
  }
  if (!value->has_struct_value()) return;
  auto& members = *value->mutable_struct_value()->mutable_fields();
  // The files of evaluations contain times.
  const auto path = members.find("path");
  if (path != members.end() &&
      absl::EndsWith(path->second.string_value(), ".evaluation.pb")) {
    members.clear();
  }
  for (auto member = members.begin(); member != members.end();) {
    if (IsOfTime(std::string(member->first))) {
      member = members.erase(member);
    } else {
      RemoveTimes(&member->second);
      ++member;
    }
  }
}

// Returns everything in results.json except times.
std::string Figures(const TestFolder& folder) {
  Value results = ParseJson(folder.Read("out/results.json"));
  RemoveTimes(&results);
  return results.DebugString();
}

std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.file_size() > 0) {
      files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Flips a bit in place, so that all links to the file see it. A third of the
// flips are among the first 64 bytes, where headers and lengths are, and a
// third among the last ones.
std::string Flip(const std::string& path, std::mt19937* random) {
  std::string content = *ReadFile(path);
  const size_t near = std::min<size_t>(content.size(), 64);
  size_t at = (*random)() % content.size();
  const int part = (*random)() % 3;
  if (part == 1) at = (*random)() % near;
  if (part == 2) at = content.size() - 1 - (*random)() % near;
  const int bit = (*random)() % 8;
  content[at] ^= 1 << bit;
  FILE* file = fopen(path.c_str(), "r+");
  EXPECT_EQ(fwrite(content.data(), 1, content.size(), file), content.size());
  fclose(file);
  return absl::StrCat("bit ", bit, " of byte ", at, " of ", path);
}

ProgramRun Verify(const TestFolder& folder) {
  return RunProgram(kRequant, {"verify", folder.Path("out")});
}

TEST(BitFlip, IsNoticedOrHarmless) {
  const TinyWorkflow workflow;
  const TestFolder& folder = workflow.folder;
  ASSERT_THAT(workflow.Run(), Exits(kGateFailed));
  const std::string figures = Figures(folder);
  ASSERT_TRUE(absl::StrContains(figures, "gate_failed"));
  std::mt19937 random(17);
  const int rounds = FuzzRounds(16);
  for (int i = 0; i < rounds; ++i) {
    // Half of the flips are in the run's folder, half in the work folder.
    const bool in_run = i % 2 == 0;
    const std::vector<std::string> files =
        FilesIn(folder.Path(in_run ? "out" : "work"));
    const std::string path = files[random() % files.size()];
    SCOPED_TRACE(Flip(path, &random));
    const ProgramRun verified = Verify(folder);
    if (in_run) {
      EXPECT_NE(verified.exit_code, 0);
      EXPECT_FALSE(verified.out.empty() && verified.error.empty());
    }
    ProgramRun run = workflow.Run();
    if (absl::EndsWith(path, "out/manifest.json")) {
      // It is no longer known whose files these are.
      EXPECT_THAT(run, Fails("manifest"));
      fs::remove_all(folder.Path("out"));
      run = workflow.Run();
    } else if (absl::StrContains(path, "/work/cache/")) {
      EXPECT_TRUE(absl::StrContains(run.error, "was changed since it was made"))
          << run.error;
    }
    EXPECT_THAT(run, Exits(kGateFailed));
    ASSERT_EQ(Figures(folder), figures);
    EXPECT_THAT(Verify(folder), Exits(0));
  }
}

}  // namespace
}  // namespace requant::bit_flip_test
