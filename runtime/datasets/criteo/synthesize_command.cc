#include <gflags/gflags.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files/file.h"
#include "base/json.h"
#include "base/program/flags.h"
#include "base/status_macros.h"
#include "base/terminal/progress.h"
#include "runtime/datasets/criteo/criteo_files.h"
#include "runtime/datasets/criteo/criteo_format.h"
#include "runtime/datasets/criteo/criteo_generator.h"
#include "runtime/datasets/criteo/dataset_commands.h"

DEFINE_uint64(seed, 1, "Decides what is drawn.");
DEFINE_int64(rows, 100000,
             "How many rows; the first rows are always the same.");
DEFINE_string(split, "train",
              "\"train\", \"calibration\" or \"eval\": streams of rows that "
              "have nothing to do with each other.");

DEFINE_string(summary_out, "",
              "Write a summary as JSON to this file: rows, positives, and how "
              "many labels are guessed right by who knows the distribution.");

namespace requant {
namespace {

std::string Name() { return absl::StrCat(ProgramName(), " synthesize"); }

ProgramHelp Help() {
  ProgramHelp help;
  help.name = Name();
  help.summary =
      "writes records like those of the Criteo challenge, drawn from a known "
      "distribution: the same seed, split and row number give the same row on "
      "any machine.";
  help.usage =
      "$0 --rows=100000 --split=eval --out=eval.csv\n"
      "$0 --format=preprocessed --ranges=ranges.json "
      "--out=eval.tfrecords";
  help.flag_files = {__FILE__, CommonFlagsFile()};
  return help;
}

struct Task {
  CriteoSplit split;
  CriteoFormat format;
  NumericRanges ranges;
};

struct Totals {
  int64_t positives = 0;
  // The expected number of rows that the best possible guess gets right, and
  // the number that it got right.
  double expected_correct = 0;
  int64_t correct = 0;
};

absl::StatusOr<Task> ReadTask() {
  Task task;
  const auto split = CriteoSplitNamed(FLAGS_split);
  if (!split.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--split is \"train\", \"calibration\" or \"eval\", not "
                     "\"",
                     FLAGS_split, "\""));
  }
  task.split = *split;
  REQUANT_ASSIGN_OR_RETURN(task.format, FormatFlag(CriteoFormat::kCsv));
  if (FLAGS_out.empty()) return absl::InvalidArgumentError("--out is missing");
  if (FLAGS_rows < 0) return absl::InvalidArgumentError("--rows is negative");
  if ((task.format == CriteoFormat::kPreprocessed) == FLAGS_ranges.empty()) {
    return absl::InvalidArgumentError(
        "--ranges=FILE goes with --format=preprocessed, and only with it");
  }
  return task;
}

// The clock is not read for every row.
constexpr int64_t kRowsBetweenUpdates = 4096;

absl::Status WriteRows(const Task& task, int fd, Totals* totals) {
  CriteoGenerator generator(FLAGS_seed, task.split);
  CriteoWriter writer(fd, task.format, task.ranges, FLAGS_buckets);
  CriteoRecord record;
  Progress progress({absl::StrCat("writing ", FLAGS_out), "rows", FLAGS_rows});
  for (int64_t row = 0; row < FLAGS_rows; ++row) {
    const double probability = generator.Next(&record);
    totals->positives += record.label;
    totals->expected_correct += std::max(probability, 1 - probability);
    totals->correct += record.label == (probability > 0.5 ? 1 : 0);
    REQUANT_RETURN_IF_ERROR(writer.Write(record));
    if (row % kRowsBetweenUpdates == 0) progress.Update(row + 1);
  }
  progress.Update(FLAGS_rows);
  progress.Finish();
  return writer.Flush();
}

void PrintTotals(const Totals& totals) {
  const double percent = FLAGS_rows == 0 ? 0 : 100.0 / FLAGS_rows;
  absl::FPrintF(stderr,
                "%d rows, %.3f %% positive; knowing the distribution, %d "
                "(%.3f %%) are guessed right, %.3f %% expected\n",
                FLAGS_rows, totals.positives * percent, totals.correct,
                totals.correct * percent, totals.expected_correct * percent);
}

std::string TotalsAsJson(const Totals& totals) {
  return absl::StrFormat(
      "{\"seed\": %d, \"split\": %s, \"rows\": %d, \"positives\": %d, "
      "\"bayes_correct\": %d, \"bayes_expected_correct\": %.1f}\n",
      FLAGS_seed, JsonString(FLAGS_split), FLAGS_rows, totals.positives,
      totals.correct, totals.expected_correct);
}

absl::Status Synthesize(Task task) {
  if (!FLAGS_ranges.empty()) {
    REQUANT_ASSIGN_OR_RETURN(task.ranges, ReadRanges(FLAGS_ranges));
  }
  Totals totals;
  std::vector<FileToWrite> outputs = {
      {FLAGS_out == "-" ? "/dev/stdout" : FLAGS_out,
       [&](int fd) { return WriteRows(task, fd, &totals); }}};
  if (!FLAGS_summary_out.empty()) {
    outputs.push_back({FLAGS_summary_out, [&](int fd) {
                         return WriteAll(fd, TotalsAsJson(totals));
                       }});
  }
  std::vector<std::string> paths;
  for (const FileToWrite& output : outputs) paths.push_back(output.path);
  REQUANT_RETURN_IF_ERROR(CheckFiles({}, paths));
  REQUANT_RETURN_IF_ERROR(WriteFilesAtomically(outputs));
  PrintTotals(totals);
  return absl::OkStatus();
}

}  // namespace

int RunSynthesize(const std::vector<std::string>& args) {
  std::vector<std::string> positional;
  if (const auto code = ParseCommandFlags(args, Help(), &positional))
    return *code;
  if (!positional.empty()) {
    return ReportUsage(Name(), absl::StrCat("takes no argument such as \"",
                                            positional[0], "\""));
  }
  const absl::StatusOr<Task> task = ReadTask();
  if (!task.ok()) return ReportUsage(Name(), task.status().message());
  const absl::Status status = Synthesize(*task);
  return status.ok() ? kExitOk : ReportFailure(Name(), status);
}

}  // namespace requant
