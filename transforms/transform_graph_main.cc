// Implements TensorFlow's program transform_graph with its flags.

#include <gflags/gflags.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/files/file.h"
#include "base/program/flags.h"
#include "base/program/isolation.h"
#include "base/status_macros.h"
#include "base/text/printable.h"
#include "graph/diff.h"
#include "graph/graph_io.h"
#include "re2/re2.h"
#include "transforms/pipeline.h"
#include "transforms/pipeline_parser.h"
#include "transforms/registry.h"
#include "transforms/transform.h"

DEFINE_string(
    in_graph, "",
    "The graph to read: a binary or text GraphDef, or a SavedModel directory.");
DEFINE_string(out_graph, "", "Where to write the result.");
DEFINE_string(inputs, "", "Names of the graph's inputs, separated by commas.");
DEFINE_string(outputs, "",
              "Names of the graph's outputs, separated by commas.");
DEFINE_string(transforms, "",
              "The transforms, in order, such as 'strip_unused_nodes "
              "remove_nodes(op=Identity)'.");
DEFINE_bool(output_as_text, false,
            "Write text instead of binary, whatever the name of --out_graph.");
DEFINE_string(saved_model_tags, "",
              "Tags of the SavedModel's graph, separated by commas; without "
              "them the one for serving.");
DEFINE_string(
    plugins, "",
    "Shared libraries with transforms of your own, separated by commas.");
DEFINE_bool(allow_override, false,
            "Let a plugin replace a transform that already exists.");
DEFINE_bool(list_transforms, false, "List all transforms and stop.");
DEFINE_string(describe, "", "Describe this transform and stop.");
DEFINE_bool(transforms_markdown, false,
            "Print the reference of all transforms as Markdown and stop.");
DEFINE_string(dump_dir, "",
              "Write the graph after every transform into this directory.");
DEFINE_int32(stop_after, -1, "Run only the first N transforms; -1 means all.");
DEFINE_bool(verify, true,
            "Check the graph before the first and after every transform.");
DEFINE_bool(quiet, false, "Print nothing but warnings and errors.");
DEFINE_double(timeout, 3600, "Give up after this many seconds; 0 means never.");

namespace requant {
namespace {

std::string Prerequisites(const TransformSpec& spec) {
  if (!spec.needs_outputs) return spec.prerequisites;
  return spec.prerequisites == "none"
             ? "--outputs"
             : absl::StrCat("--outputs, ", spec.prerequisites);
}

// Returns prose as Markdown, with names of transforms, flags and nodes, and
// whole calls such as a(b=c, d=e), as code.
std::string Markdown(std::string text) {
  static const auto* code =
      new RE2(R"((--\w+(?:=\w+)?|\w+\(\w+=[^()]*\))"
              R"(|[^\s()]*[_=<](?:[^\s()]*[^\s().,;:])?))");
  RE2::GlobalReplace(&text, *code, R"(`\1`)");
  return absl::StrReplaceAll(text, {{"|", "\\|"}});
}

void AppendMarkdown(const RegisteredTransform& transform, std::string* text) {
  const TransformSpec& spec = transform.spec;
  absl::StrAppend(text, "\n### ", spec.name, "\n\n", Markdown(spec.summary),
                  "\n");
  if (!spec.description.empty()) {
    absl::StrAppend(text, Markdown(spec.description), "\n");
  }
  if (Prerequisites(spec) != "none") {
    absl::StrAppend(text, "\nPrerequisites: ", Markdown(Prerequisites(spec)),
                    "\n");
  }
  if (spec.parameters.empty()) return;
  absl::StrAppend(text, "\n| parameter | type | meaning |\n|---|---|---|\n");
  for (const ParameterSpec& parameter : spec.parameters) {
    absl::StrAppend(text, "| `", parameter.name, "` | ",
                    ParameterNote(parameter), " | ",
                    Markdown(parameter.description), " |\n");
  }
}

// Appends the transforms of one origin: a list of links, then each transform.
void AppendSection(const TransformRegistry& registry, std::string_view origin,
                   std::string_view title, std::string* text) {
  absl::StrAppend(text, "\n## ", title, "\n\n");
  for (const auto* transform : registry.All()) {
    if (transform->origin != origin) continue;
    const std::string& name = transform->spec.name;
    absl::StrAppend(text, "- [", name, "](#",
                    absl::StrReplaceAll(name, {{":", ""}}),
                    "): ", Markdown(transform->spec.summary), "\n");
  }
  for (const auto* transform : registry.All()) {
    if (transform->origin == origin) AppendMarkdown(*transform, text);
  }
}

// Returns a line with the name and summary of each transform.
std::string ListTransforms(const TransformRegistry& registry) {
  size_t width = 0;
  for (const auto* transform : registry.All()) {
    width = std::max(width, transform->spec.name.size());
  }
  std::string text;
  for (const auto* transform : registry.All()) {
    absl::StrAppendFormat(&text, "%-*s  %s\n", static_cast<int>(width),
                          transform->spec.name, transform->spec.summary);
  }
  return text;
}

// Returns a transform's whole description, formatted for a terminal.
std::string DescribeTransform(const RegisteredTransform& transform) {
  const TransformSpec& spec = transform.spec;
  std::string text;
  AppendWrapped(
      absl::StrCat(spec.name, " (", transform.origin, "): ", spec.summary), 0,
      &text);
  if (!spec.description.empty()) {
    text += "\n";
    AppendWrapped(spec.description, 0, &text);
  }
  text += "\nParameters:\n";
  for (const ParameterSpec& parameter : spec.parameters) {
    absl::StrAppend(&text, "  ", parameter.name, " (", ParameterNote(parameter),
                    ")\n");
    AppendWrapped(parameter.description, 6, &text);
  }
  absl::StrAppend(
      &text, "  ignore_errors (bool, default false)\n",
      "      When it fails, warn and go on with the graph as it was.\n\n");
  AppendWrapped(absl::StrCat("Prerequisites: ", Prerequisites(spec)), 0, &text);
  return text;
}

// Returns docs/transforms.md, the reference for all transforms.
std::string TransformsMarkdown(const TransformRegistry& registry) {
  std::string text =
      "# Transform reference\n\n"
      "Written by `transform_graph --transforms_markdown`; a test compares it "
      "with the registry.\n\n"
      "The transforms of a list run from left to right, as in\n"
      "`--transforms='strip_unused_nodes remove_nodes(op=Identity, "
      "op=CheckNumerics)'`. Values with blanks, commas\n"
      "or brackets are put in double quotes. Every transform also takes "
      "`ignore_errors=true`: when it returns\n"
      "an error, that becomes a warning and the next one goes on with the "
      "graph as it was. A crash and a graph that no\n"
      "longer passes the verifier end the run all the same.\n";
  AppendSection(registry, "Requant", "Requant's own transforms", &text);
  AppendSection(registry, "TensorFlow", "TensorFlow's stock transforms", &text);
  return text;
}

const char* const kProgram = ProgramName();

ProgramHelp Help() {
  return {kProgram,
          "Runs transforms on a TensorFlow graph.",
          "$0 --in_graph=in.pb --out_graph=out.pb --inputs=x --outputs=y "
          "--transforms='fold_constants strip_unused_nodes'\n"
          "$0 --list_transforms\n"
          "$0 --describe=freeze_min",
          {__FILE__},
          "Exit codes: 0 done, 1 failed (nothing was written), 2 wrong usage."};
}

// Expands "~/x" as shells do, because a quoted path arrives unexpanded.
std::string ExpandHome(const std::string& path) {
  const char* home = std::getenv("HOME");
  if (home == nullptr || !absl::StartsWith(path, "~/")) return path;
  return absl::StrCat(home, path.substr(1));
}

GraphFormat OutputFormat() {
  return FLAGS_output_as_text ? GraphFormat::kText : GraphFormat::kBinary;
}

bool OnlyAsks() {
  return FLAGS_list_transforms || !FLAGS_describe.empty() ||
         FLAGS_transforms_markdown;
}

std::optional<std::string> UsageProblem(
    const std::vector<std::string>& positional) {
  if (!positional.empty()) {
    return absl::StrCat("unexpected argument \"", positional.front(), "\"");
  }
  if (OnlyAsks()) return std::nullopt;
  if (FLAGS_in_graph.empty()) return "--in_graph is missing";
  if (FLAGS_out_graph.empty()) return "--out_graph is missing";
  if (FLAGS_transforms.empty()) {
    return "--transforms is missing (--list_transforms shows them)";
  }
  const auto calls = ParsePipeline(FLAGS_transforms);
  if (!calls.ok()) return std::string(calls.status().message());
  if (calls->empty()) return "--transforms names no transform";
  return std::nullopt;
}

absl::StatusOr<TransformRegistry*> OpenRegistry() {
  SetActivity("starting TensorFlow");
  REQUANT_ASSIGN_OR_RETURN(TransformRegistry * registry,
                           TransformRegistry::Get());
  for (const std::string& path : ParseNameList(FLAGS_plugins)) {
    SetActivity(absl::StrCat("loading the plugin ", path));
    std::vector<std::string> notes;
    REQUANT_RETURN_IF_ERROR(
        registry->LoadPlugin(ExpandHome(path), FLAGS_allow_override, &notes));
    for (const std::string& note : notes) {
      Say(kProgram, absl::StrCat("note: ", note));
    }
  }
  return registry;
}

int Answer(const TransformRegistry& registry) {
  std::string text;
  if (FLAGS_list_transforms) text = ListTransforms(registry);
  if (FLAGS_transforms_markdown) text = TransformsMarkdown(registry);
  if (!FLAGS_describe.empty()) {
    const auto transform = registry.Find(FLAGS_describe);
    if (!transform.ok()) {
      ReportFailure(kProgram, transform.status());
      return kExitUsage;
    }
    text += DescribeTransform(**transform);
  }
  std::fputs(text.c_str(), stdout);
  return kExitOk;
}

absl::Status MakeDumpFolder() {
  std::error_code error;
  if (!FLAGS_dump_dir.empty()) {
    std::filesystem::create_directory(ExpandHome(FLAGS_dump_dir), error);
  }
  if (!error) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cannot create the folder --dump_dir=", FLAGS_dump_dir, ": ",
                   error.message()));
}

absl::Status Dump(std::string_view name, int index,
                  const tensorflow::GraphDef& graph) {
  if (FLAGS_dump_dir.empty()) return absl::OkStatus();
  const std::string path =
      absl::StrFormat("%s/%02d_%s.%s", ExpandHome(FLAGS_dump_dir), index,
                      absl::StrReplaceAll(name, {{":", "_"}}),
                      FLAGS_output_as_text ? "pbtxt" : "pb");
  return WriteGraph(graph, path, OutputFormat());
}

// Returns whether the graph goes to stdout, by any name, and not to a terminal.
bool WritesGraphToStdout() {
  struct stat graph, output;
  return stat(ExpandHome(FLAGS_out_graph).c_str(), &graph) == 0 &&
         fstat(STDOUT_FILENO, &output) == 0 && graph.st_dev == output.st_dev &&
         graph.st_ino == output.st_ino && !S_ISCHR(output.st_mode);
}

// Prints what was done to stdout, or to stderr if the graph goes to stdout.
void Tell(std::string_view text) {
  if (FLAGS_quiet) return;
  std::fprintf(WritesGraphToStdout() ? stderr : stdout, "%s\n",
               std::string(text).c_str());
}

PipelineOptions Options() {
  PipelineOptions options;
  options.inputs = ParseNameList(FLAGS_inputs);
  options.outputs = ParseNameList(FLAGS_outputs);
  options.verify = FLAGS_verify;
  options.stop_after = FLAGS_stop_after;
  options.on_finish = Dump;
  options.on_note = [](std::string_view text) { Tell(text); };
  options.on_warning = [](std::string_view text) {
    Say(kProgram, absl::StrCat("warning: ", text));
  };
  return options;
}

absl::Status Transform(const std::vector<TransformCall>& calls,
                       const TransformRegistry& registry) {
  const std::string out = ExpandHome(FLAGS_out_graph);
  REQUANT_RETURN_IF_ERROR(CheckWritable(out));
  REQUANT_RETURN_IF_ERROR(MakeDumpFolder());
  SetActivity("reading the graph");
  const std::vector<std::string> tags = ParseNameList(FLAGS_saved_model_tags);
  REQUANT_ASSIGN_OR_RETURN(
      tensorflow::GraphDef graph,
      ReadGraph(ExpandHome(FLAGS_in_graph), {tags.begin(), tags.end()}));
  const GraphSize before = SizeOf(graph);
  REQUANT_RETURN_IF_ERROR(RunPipeline(calls, registry, Options(), &graph));
  SetActivity("writing the graph");
  REQUANT_RETURN_IF_ERROR(WriteGraph(graph, out, OutputFormat()));
  Tell(GraphSizeSummary(before, SizeOf(graph)));
  return absl::OkStatus();
}

// Does the isolated child's work.
int Work() {
  const absl::StatusOr<TransformRegistry*> registry = OpenRegistry();
  if (!registry.ok()) return ReportFailure(kProgram, registry.status());
  if (OnlyAsks()) return Answer(**registry);
  const std::vector<TransformCall> calls = *ParsePipeline(FLAGS_transforms);
  if (absl::Status status = CheckCalls(calls, **registry); !status.ok()) {
    ReportFailure(kProgram, status);
    return kExitUsage;
  }
  const absl::Status status = Transform(calls, **registry);
  return status.ok() ? kExitOk : ReportFailure(kProgram, status);
}

int Main(int argc, char** argv) {
  std::vector<std::string> positional;
  if (auto code = ParseFlags(argc, argv, Help(), &positional)) return *code;
  if (auto problem = UsageProblem(positional)) {
    return ReportUsage(kProgram, *problem);
  }
  IsolationOptions isolation;
  isolation.program = kProgram;
  isolation.arguments.assign(argv + 1, argv + argc);
  isolation.outputs = {ExpandHome(FLAGS_out_graph)};
  if (!FLAGS_dump_dir.empty()) {
    isolation.output_folders = {ExpandHome(FLAGS_dump_dir)};
  }
  isolation.subject = FLAGS_in_graph;
  isolation.timeout_seconds = FLAGS_timeout;
  return RunIsolated(isolation, Work);
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  return requant::FinishOutput(requant::kProgram, requant::Main(argc, argv));
}
