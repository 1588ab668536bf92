// docs/workflows.md: its examples plan and run as they stand, and it names
// every field.

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "google/protobuf/descriptor.h"
#include "tests/support/program_runs.h"
#include "workflows/workflow.pb.h"

namespace requant::workflow_docs_test {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FileDescriptor;

constexpr char kRequant[] = "workflows/requant";

std::string Document() { return ReadFile("docs/workflows.md").value(); }

struct Example {
  std::string name;
  std::string text;
};

// Returns the blocks that are workflows; the first line of each is its file's
// name.
std::vector<Example> Examples() {
  std::vector<Example> examples;
  bool in_block = false;
  const std::string document = Document();
  for (std::string_view line : absl::StrSplit(document, '\n')) {
    if (absl::StartsWith(line, "```")) {
      in_block = line == "```textproto";
      if (in_block) examples.emplace_back();
    } else if (in_block) {
      if (examples.back().name.empty()) {
        examples.back().name = std::string(absl::StripPrefix(line, "# "));
      }
      absl::StrAppend(&examples.back().text, line, "\n");
    }
  }
  return examples;
}

// A folder that looks as the top of the repository does, with an example in it.
class ExampleFolder {
 public:
  explicit ExampleFolder(const Example& example) {
    const char* const root = std::getenv("TEST_SRCDIR");
    EXPECT_EQ(symlink(absl::StrCat(root, "/requant/workflows").c_str(),
                      folder_.Path("workflows").c_str()),
              0);
    path_ = folder_.Write(example.name, example.text);
  }

  const std::string& path() const { return path_; }
  std::string Write(const std::string& name, const std::string& text) const {
    return folder_.Write(name, text);
  }

 private:
  TestFolder folder_;
  std::string path_;
};

TEST(WorkflowDocs, EveryExampleHasTheHeaderForEditors) {
  EXPECT_THAT(Examples(), SizeIs(7));
  for (const Example& example : Examples()) {
    EXPECT_THAT(example.name, EndsWith(".textproto"));
    EXPECT_THAT(example.text,
                HasSubstr("\n# proto-file: workflows/workflow.proto\n"
                          "# proto-message: requant.Workflow\n"))
        << example.name;
  }
}

TEST(WorkflowDocs, EveryExamplePlans) {
  for (const Example& example : Examples()) {
    const ExampleFolder folder(example);
    const ProgramRun run = RunProgram(kRequant, {"plan", folder.path()});
    EXPECT_EQ(run.exit_code, 0) << example.name << ": " << run.error;
  }
}

// All in one work folder: what two examples have in common is done once.
TEST(WorkflowDocs, EveryExampleRunsAndThenIsCached) {
  const TestFolder results;
  for (const Example& example : Examples()) {
    const ExampleFolder folder(example);
    const std::string work_dir = "--work_dir=" + results.Path("work");
    const ProgramRun run = RunProgram(
        kRequant, {"run", folder.path(), work_dir,
                   "--out=" + results.Path(example.name), "--strict"});
    EXPECT_EQ(run.exit_code, 0) << example.name << ": " << run.error;
    const ProgramRun plan =
        RunProgram(kRequant, {"plan", folder.path(), work_dir});
    EXPECT_THAT(plan.out, HasSubstr(" 0 would run")) << example.name;
  }
}

TEST(WorkflowDocs, WhatTrimChangedIsInAFileAndInTheNotes) {
  const TestFolder results;
  const Example first = Examples().front();
  const ExampleFolder folder(first);
  ASSERT_THAT(RunProgram(kRequant,
                         {"run", folder.path(), "--out=" + results.Path("out"),
                          "--work_dir=" + results.Path("work")}),
              Exits(0));
  const std::string changes = ReadFile(results.Path("out/changes.txt")).value();
  EXPECT_THAT(changes, HasSubstr("\n  Identity "));
  const std::string first_line = changes.substr(0, changes.find('\n'));
  EXPECT_THAT(ReadFile(results.Path("out/results.json")).value(),
              HasSubstr(first_line));
}

TEST(WorkflowDocs, OneEntersInTheMiddleAsItSays) {
  for (const Example& example : Examples()) {
    if (example.name != "entering.textproto") continue;
    const ExampleFolder folder(example);
    const std::string graph = folder.Write("frozen.pb", "");
    EXPECT_THAT(RunProgram(kRequant, {"plan", folder.path(), "--set",
                                      "frozen_graph=" + graph, "--set",
                                      "records=100000"}),
                Prints("freeze: not run, its graph is",
                       "look: left out, because variable "
                       "\"frozen_graph\" is set"));
    return;
  }
  ADD_FAILURE() << "the example is gone";
}

// Returns the text between the message's heading and the next.
std::string Section(const std::string& document, const std::string& message) {
  const size_t start = document.find(absl::StrCat("\n### ", message, "\n"));
  if (start == std::string::npos) return "";
  const size_t end = document.find("\n### ", start + 1);
  return document.substr(start, end - start);
}

TEST(WorkflowDocs, NameEveryFieldOfEveryMessage) {
  const std::string document = Document();
  const FileDescriptor* const file = Workflow::descriptor()->file();
  for (int i = 0; i < file->message_type_count(); ++i) {
    const Descriptor* const type = file->message_type(i);
    const std::string section = Section(document, std::string(type->name()));
    EXPECT_NE(section, "") << type->name();
    for (int j = 0; j < type->field_count(); ++j) {
      EXPECT_THAT(section,
                  HasSubstr(absl::StrCat("`", type->field(j)->name(), "`")))
          << type->name();
    }
  }
}

}  // namespace
}  // namespace requant::workflow_docs_test
