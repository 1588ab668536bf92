#include "runtime/session/job_flags.h"

#include <gflags/gflags.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "runtime/datasets/dataset_spec.h"

DEFINE_string(memory_limit, "",
              "stop the graph when it holds more memory than this, such as 8G; "
              "empty: nine tenths of what is free");
DEFINE_double(timeout, 0, "stop after this many seconds; 0: never");
DEFINE_double(
    stall_timeout, 300,
    "stop after this many seconds without a finished batch; 0: never");
DEFINE_string(
    log_file, "",
    "write here what the graph writes to stderr, such as the lines "
    "of Print operations; -: to stderr; empty: kept only when it crashes");

namespace requant {
namespace {

void RemoveEmpty(std::vector<std::string>* paths) {
  paths->erase(std::remove(paths->begin(), paths->end(), ""), paths->end());
}

// Sets the limits from the flags; returns what is wrong with them, or "".
std::string SetLimits(IsolationOptions* isolation) {
  GraphLimits& limits = isolation->graph.emplace();
  if (!FLAGS_memory_limit.empty()) {
    const absl::StatusOr<int64_t> bytes = ParseBytes(FLAGS_memory_limit);
    if (!bytes.ok()) {
      return absl::StrCat("--memory_limit: ", bytes.status().message());
    }
    limits.memory_bytes = *bytes;
  }
  if (!(FLAGS_timeout >= 0) || !(FLAGS_stall_timeout >= 0)) {
    return "--timeout and --stall_timeout are seconds, at least 0";
  }
  isolation->timeout_seconds = FLAGS_timeout;
  limits.stall_seconds = FLAGS_stall_timeout;
  limits.log_file = FLAGS_log_file;
  return "";
}

}  // namespace

int RunGraphProgram(int argc, char** argv, GraphProgram program) {
  const std::string name = program.help.name;
  program.help.flag_files.push_back(__FILE__);
  std::vector<std::string> positional;
  if (const auto code = ParseFlags(argc, argv, program.help, &positional)) {
    return FinishOutput(name, *code);
  }
  std::string error =
      positional.empty()
          ? program.usage_error()
          : absl::StrCat("unexpected argument \"", positional[0], "\"");
  IsolationOptions isolation;
  if (error.empty()) error = SetLimits(&isolation);
  if (!error.empty()) return ReportUsage(name, error);
  isolation.program = name;
  isolation.arguments.assign(argv + 1, argv + argc);
  program.set_options(&isolation);
  RemoveEmpty(&isolation.outputs);
  return RunIsolated(isolation, program.work);
}

std::string ThreadsError(int threads, int inter_op_threads) {
  constexpr int kMostThreads = 1024;
  for (const int number : {threads, inter_op_threads}) {
    if (number < 0 || number > kMostThreads) {
      return absl::StrCat("--threads and --inter_op_threads are from 0 to ",
                          kMostThreads);
    }
  }
  return "";
}

std::string FormatError(std::string_view format) {
  if (format == "text" || format == "json") return "";
  return absl::StrCat("--format is text or json, not \"", format, "\"");
}

absl::Status CheckOutputs(std::vector<std::string> inputs,
                          std::vector<std::string> outputs) {
  RemoveEmpty(&inputs);
  RemoveEmpty(&outputs);
  REQUANT_RETURN_IF_ERROR(CheckDistinct(inputs, outputs));
  for (const std::string& output : outputs) {
    REQUANT_RETURN_IF_ERROR(CheckWritable(output));
  }
  return absl::OkStatus();
}

std::vector<std::string> SplitList(const std::string& list) {
  return absl::StrSplit(list, ',', absl::SkipEmpty());
}

ModelSpec MakeModelSpec(const std::string& path, const std::string& tags,
                        const std::string& signature) {
  ModelSpec model;
  model.set_path(path);
  for (const std::string& tag : SplitList(tags)) model.add_tags(tag);
  model.set_signature(signature);
  return model;
}

absl::StatusOr<DatasetSpec> ReadJobDataset(const std::string& path,
                                           const std::string& files,
                                           const std::string& output,
                                           const std::string& use) {
  REQUANT_ASSIGN_OR_RETURN(DatasetSpec dataset,
                           ReadDatasetSpec(path, SplitList(files)));
  if (!output.empty()) dataset.mutable_prediction()->set_tensor(output);
  if (dataset.prediction().tensor().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " names no prediction to ", use,
                     ": add prediction { tensor: \"...\" } or give --output"));
  }
  return dataset;
}

absl::StatusOr<int64_t> ParseBytes(std::string_view text) {
  const absl::Status error = absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is no amount of memory; write 8G or 512M"));
  std::string_view rest = absl::StripAsciiWhitespace(text);
  if (!absl::ConsumeSuffix(&rest, "B")) absl::ConsumeSuffix(&rest, "b");
  const bool binary = absl::ConsumeSuffix(&rest, "i");
  double factor = 1;
  if (!rest.empty() && absl::ascii_isalpha(rest.back())) {
    const size_t power =
        std::string_view("kmgt").find(absl::ascii_tolower(rest.back()));
    if (power == std::string_view::npos) return error;
    factor = std::pow(binary ? 1024.0 : 1000.0, power + 1);
    rest.remove_suffix(1);
  } else if (binary) {
    return error;
  }
  double number;
  if (!absl::SimpleAtod(absl::StripAsciiWhitespace(rest), &number) ||
      !(number * factor >= 1) || number * factor > 1e18) {
    return error;
  }
  return static_cast<int64_t>(number * factor);
}

}  // namespace requant
