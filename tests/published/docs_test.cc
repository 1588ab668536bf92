// Tests README and docs as written: every command in an "sh" block works, the
// examples of docs/workflows.md plan and run, and it names every field.

#include <filesystem>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "google/protobuf/descriptor.h"
#include "tests/support/pages.h"
#include "workflows/workflow.pb.h"

namespace requant::docs_test {
namespace {

namespace fs = std::filesystem;
using google::protobuf::Descriptor;
using google::protobuf::FileDescriptor;

constexpr char kRequant[] = "workflows/requant";
constexpr char kWorkflowsPage[] = "docs/workflows.md";

// Runs the commands in a folder like the top of the repository.
void ExpectEveryCommandWorks(const std::string& page) {
  const TestFolder folder;
  MakeLikeRepository(folder);
  int commands = 0;
  for (const std::string& block : Blocks(page, "sh")) {
    for (const std::string_view command :
         absl::StrSplit(block, '\n', absl::SkipEmpty())) {
      ++commands;
      // Bazel cannot run inside a Bazel test; what it would build is present.
      if (absl::StartsWith(command, "bazel build ")) continue;
      const ProgramRun run =
          RunIn(folder, "/bin/sh", {"-c", std::string(command)});
      EXPECT_THAT(run, Exits(0)) << command << "\n" << run.out;
      EXPECT_NE(run.out + run.error, "") << command;
    }
  }
  EXPECT_GE(commands, 8);
}

TEST(Readme, EveryCommandWorks) { ExpectEveryCommandWorks("README.md"); }

TEST(SavedModelsPage, EveryCommandWorks) {
  ExpectEveryCommandWorks("docs/saved_models.md");
}

TEST(Readme, ShowsTheTwoCommands) {
  EXPECT_THAT(ReadFile("README.md").value(),
              AllOf(HasSubstr("./requant run"), HasSubstr("./requant test")));
}

// A workflow of docs/workflows.md, in a folder that looks like the top of the
// repository.
class Example {
 public:
  explicit Example(const std::string& text)
      : text(text),
        name(absl::StripPrefix(text.substr(0, text.find('\n')), "# ")),
        path(folder.Write(name, text)) {
    fs::create_symlink(fs::absolute("workflows"), folder.Path("workflows"));
  }

  const TestFolder folder;
  const std::string text;
  // The name of its file, taken from the first line, and the file.
  const std::string name;
  const std::string path;
};

std::vector<std::string> ExampleTexts() {
  return Blocks(kWorkflowsPage, "textproto");
}

TEST(WorkflowDocs, EveryExampleHasTheHeaderForEditors) {
  EXPECT_THAT(ExampleTexts(), SizeIs(7));
  for (const std::string& text : ExampleTexts()) {
    EXPECT_THAT(text, MatchesRegex("# [a-z_]+\\.textproto\n"
                                   "# proto-file: workflows/workflow.proto\n"
                                   "# proto-message: requant.Workflow\n"
                                   "(.|\n)*"));
  }
}

// All examples share a work folder, so that their common tasks run once.
TEST(WorkflowDocs, EveryExampleRunsAndThenIsCached) {
  const TestFolder results;
  const std::string work_dir = "--work_dir=" + results.Path("work");
  for (const std::string& text : ExampleTexts()) {
    const Example example(text);
    EXPECT_THAT(RunProgram(kRequant, {"run", example.path, work_dir, "--strict",
                                      "--out=" + results.Path(example.name)}),
                Exits(0))
        << example.name;
    EXPECT_THAT(RunProgram(kRequant, {"plan", example.path, work_dir}),
                Prints(" 0 would run"))
        << example.name;
  }
  // A file and the notes say what the first example's trim changed.
  const std::string first = Example(ExampleTexts().front()).name;
  const std::string changes = results.Read(first + "/changes.txt");
  EXPECT_THAT(changes, HasSubstr("\n  Identity "));
  EXPECT_THAT(results.Read(first + "/results.json"),
              HasSubstr(changes.substr(0, changes.find('\n'))));
}

TEST(WorkflowDocs, OneEntersInTheMiddleAsItSays) {
  for (const std::string& text : ExampleTexts()) {
    const Example example(text);
    if (example.name != "entering.textproto") continue;
    const std::string graph = example.folder.Write("frozen.pb", "");
    EXPECT_THAT(RunProgram(kRequant, {"plan", example.path, "--set",
                                      "frozen_graph=" + graph, "--set",
                                      "records=100000"}),
                Prints("freeze: not run, its graph is",
                       "look: left out, because variable "
                       "\"frozen_graph\" is set"));
    return;
  }
  ADD_FAILURE() << "the example is gone";
}

// Returns the text between the message's heading and the next one.
std::string Section(const std::string& document, const std::string& message) {
  const size_t start = document.find(absl::StrCat("\n### ", message, "\n"));
  if (start == std::string::npos) return "";
  const size_t end = document.find("\n### ", start + 1);
  return document.substr(start, end - start);
}

TEST(WorkflowDocs, NameEveryFieldOfEveryMessage) {
  const std::string document = ReadFile(kWorkflowsPage).value();
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
}  // namespace requant::docs_test
