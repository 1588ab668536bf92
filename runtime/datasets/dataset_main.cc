// dataset makes the records that Wide & Deep models read.

#include <gflags/gflags.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files/file.h"
#include "base/files/files.h"
#include "base/json.h"
#include "base/program/flags.h"
#include "base/status_macros.h"
#include "base/terminal/progress.h"
#include "base/text/nearest_name.h"
#include "base/text/printable.h"
#include "base/version.h"
#include "runtime/datasets/criteo/criteo_format.h"

DEFINE_string(format, "",
              "What to write. \"csv\": the challenge's text (synthesize, by "
              "default); \"tfrecord\": records with features label, I1 ... "
              "I13, C1 ... C26; \"preprocessed\": records with features label, "
              "numeric_1, string_1 (preprocess, by default).");
DEFINE_string(output, "", "The file to write; \"-\" for standard output.");
DEFINE_string(ranges, "",
              "Normalise the numeric columns by the ranges in this file, which "
              "preprocess --ranges_out wrote.");
DEFINE_int64(buckets, requant::kDefaultBuckets,
             "Hash buckets per categorical column of preprocessed records.");

DEFINE_uint64(seed, 1, "Decides what is drawn.");
DEFINE_int64(rows, 100000,
             "How many rows; the first rows are always the same.");
DEFINE_string(split, "train",
              "\"train\", \"calibration\" or \"eval\": streams of rows that "
              "have nothing to do with each other.");
DEFINE_string(summary_out, "",
              "Write a summary as JSON to this file: rows, positives, and how "
              "many labels are guessed right by who knows the distribution.");

DEFINE_string(out_dir, ".",
              "The folder for dataset_preprocessed_NAME.tfrecords (or "
              "dataset_raw_NAME.tfrecords, dataset_NAME.csv; see --format) of "
              "every NAME.csv.");
DEFINE_string(ranges_out, "", "Write the ranges that were used to this file.");
DEFINE_bool(strict, false,
            "Refuse bad rows, before anything is written, instead of skipping "
            "them.");

namespace requant {
namespace {

// Reading the clock for every row would be slow.
constexpr int64_t kRowsBetweenUpdates = 4096;

std::string Help() {
  ProgramHelp help;
  help.name = ProgramName();
  help.summary = "makes the records that Wide & Deep models read.";
  help.usage = "$0 COMMAND [FLAGS]\n$0 COMMAND --help";
  help.footer =
      "Commands:\n"
      "  preprocess  text files of the Criteo challenge to records\n"
      "  synthesize  rows like the challenge's, from a known distribution";
  return HelpText(help);
}

ProgramHelp SynthesizeHelp() {
  ProgramHelp help;
  help.name = absl::StrCat(ProgramName(), " synthesize");
  help.summary =
      "writes records like those of the Criteo challenge, drawn from a known "
      "distribution: the same seed, split and row number give the same row on "
      "any machine.";
  help.usage =
      "$0 --rows=100000 --split=eval --output=eval.csv\n"
      "$0 --format=preprocessed --ranges=ranges.json "
      "--output=eval.tfrecords";
  help.flag_files = {__FILE__};
  help.aliases = {{"out", "output"}};
  help.hidden_flags = {"out_dir", "ranges_out", "strict"};
  return help;
}

ProgramHelp PreprocessHelp() {
  ProgramHelp help;
  help.name = absl::StrCat(ProgramName(), " preprocess");
  help.summary =
      "turns text files of the Criteo challenge (label, I1 ... I13, C1 ... "
      "C26, separated by commas or tabs, with or without a line of names) into "
      "records: numbers normalised to (x - min) / range over all files given, "
      "categories hashed as TensorFlow does. A missing number is 0, a missing "
      "category a blank.";
  help.usage =
      "$0 --out_dir=data train.csv eval.csv\n"
      "$0 --ranges=ranges.json --output=day.tfrecords "
      "day.csv";
  help.flag_files = {__FILE__};
  help.aliases = {{"out", "output"}};
  help.hidden_flags = {"rows", "seed", "split", "summary_out"};
  help.footer =
      "Without --ranges the files are read twice: once for the ranges.\n"
      "Bad rows are skipped; the first five of each file are shown.";
  return help;
}

struct InputAndOutput {
  std::string input;
  std::string output;
};

// The task that a command line asks for.
struct Task {
  CriteoFormat format = CriteoFormat::kCsv;
  CriteoSplit split = CriteoSplit::kTrain;
  // The files of the command preprocess.
  std::vector<InputAndOutput> files;
  // If unset, the ranges of all inputs, which are then read twice.
  std::optional<NumericRanges> ranges;
};

// Returns the index in `names` of a flag's value.
absl::StatusOr<int> OneOf(std::string_view flag, const std::string& value,
                          const std::array<std::string_view, 3>& names) {
  const auto found = std::find(names.begin(), names.end(), value);
  if (found != names.end()) return found - names.begin();
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, " is \"", names[0], "\", \"", names[1],
                   "\" or \"", names[2], "\", not \"", value, "\""));
}

// Returns --format, or `standard` if it is not given. Also checks --buckets.
absl::StatusOr<CriteoFormat> FormatFlag(CriteoFormat standard) {
  if (FLAGS_buckets < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--buckets is at least 1, not ", FLAGS_buckets));
  }
  if (FLAGS_format.empty()) return standard;
  REQUANT_ASSIGN_OR_RETURN(
      const int format,
      OneOf("format", FLAGS_format, {"csv", "tfrecord", "preprocessed"}));
  return static_cast<CriteoFormat>(format);
}

// Fails if an output cannot be written, is named twice, or is also an input.
absl::Status CheckFiles(std::vector<std::string> inputs,
                        const std::vector<FileToWrite>& files) {
  if (!FLAGS_ranges.empty()) inputs.push_back(FLAGS_ranges);
  std::vector<std::string> outputs;
  for (const FileToWrite& file : files) outputs.push_back(file.path);
  REQUANT_RETURN_IF_ERROR(CheckDistinct(inputs, outputs));
  for (const std::string& output : outputs) {
    REQUANT_RETURN_IF_ERROR(CheckWritable(output));
  }
  return absl::OkStatus();
}

absl::StatusOr<Task> ReadSynthesize(const std::vector<std::string>& arguments) {
  if (!arguments.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("takes no argument such as \"", arguments[0], "\""));
  }
  Task task;
  REQUANT_ASSIGN_OR_RETURN(
      const int split,
      OneOf("split", FLAGS_split, {"train", "calibration", "eval"}));
  task.split = static_cast<CriteoSplit>(split);
  REQUANT_ASSIGN_OR_RETURN(task.format, FormatFlag(CriteoFormat::kCsv));
  if (FLAGS_output.empty())
    return absl::InvalidArgumentError("--output is missing");
  if (FLAGS_rows < 0) return absl::InvalidArgumentError("--rows is negative");
  if ((task.format == CriteoFormat::kPreprocessed) == FLAGS_ranges.empty()) {
    return absl::InvalidArgumentError(
        "--ranges=FILE goes with --format=preprocessed, and only with it");
  }
  return task;
}

struct Totals {
  int64_t positives = 0;
  // The expected and actual numbers of rows that the best possible guess gets
  // right.
  double expected_correct = 0;
  int64_t correct = 0;
};

absl::Status WriteRows(const Task& task, int fd, Totals* totals) {
  CriteoGenerator next_row = MakeCriteoGenerator(FLAGS_seed, task.split);
  CriteoWriter writer(fd, task.format, task.ranges.value_or(NumericRanges{}),
                      FLAGS_buckets);
  CriteoRecord record;
  Progress progress(
      {absl::StrCat("writing ", FLAGS_output), "rows", FLAGS_rows});
  for (int64_t row = 0; row < FLAGS_rows; ++row) {
    const double probability = next_row(&record);
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

std::string TotalsAsJson(const Totals& totals) {
  return absl::StrFormat(
      "{\"seed\": %d, \"split\": %s, \"rows\": %d, \"positives\": %d, "
      "\"bayes_correct\": %d, \"bayes_expected_correct\": %.1f}\n",
      FLAGS_seed, JsonString(FLAGS_split), FLAGS_rows, totals.positives,
      totals.correct, totals.expected_correct);
}

absl::Status Synthesize(const Task& task) {
  Totals totals;
  std::vector<FileToWrite> outputs = {
      {FLAGS_output == "-" ? "/dev/stdout" : FLAGS_output,
       [&](int fd) { return WriteRows(task, fd, &totals); }}};
  if (!FLAGS_summary_out.empty()) {
    outputs.push_back({FLAGS_summary_out, [&](int fd) {
                         return WriteAll(fd, TotalsAsJson(totals));
                       }});
  }
  REQUANT_RETURN_IF_ERROR(CheckFiles({}, outputs));
  REQUANT_RETURN_IF_ERROR(WriteFilesAtomically(outputs));
  const double percent = FLAGS_rows == 0 ? 0 : 100.0 / FLAGS_rows;
  absl::FPrintF(stderr,
                "%d rows, %.3f %% positive; knowing the distribution, %d "
                "(%.3f %%) are guessed right, %.3f %% expected\n",
                FLAGS_rows, totals.positives * percent, totals.correct,
                totals.correct * percent, totals.expected_correct * percent);
  return absl::OkStatus();
}

// Returns "train" for "data/train.csv".
std::string Stem(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);
  return std::string(path.substr(0, path.rfind('.')));
}

std::string OutputName(const std::string& input, CriteoFormat format) {
  if (!FLAGS_output.empty())
    return FLAGS_output == "-" ? "/dev/stdout" : FLAGS_output;
  return absl::StrCat(FLAGS_out_dir, "/dataset_",
                      format == CriteoFormat::kTfRecord       ? "raw_"
                      : format == CriteoFormat::kPreprocessed ? "preprocessed_"
                                                              : "",
                      Stem(input),
                      format == CriteoFormat::kCsv ? ".csv" : ".tfrecords");
}

absl::StatusOr<Task> ReadPreprocess(const std::vector<std::string>& inputs) {
  Task task;
  REQUANT_ASSIGN_OR_RETURN(task.format,
                           FormatFlag(CriteoFormat::kPreprocessed));
  if (inputs.empty()) return absl::InvalidArgumentError("no file is given");
  if (!FLAGS_output.empty() && inputs.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--output is one file for ", inputs.size(), " inputs; use --out_dir"));
  }
  std::set<std::string> outputs;
  for (const std::string& input : inputs) {
    if (input == "-" && FLAGS_output.empty()) {
      return absl::InvalidArgumentError("standard input needs --output");
    }
    task.files.push_back({input, OutputName(input, task.format)});
    if (!outputs.insert(task.files.back().output).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "two inputs would be written to ", task.files.back().output));
    }
  }
  if (!FLAGS_ranges.empty() && !FLAGS_ranges_out.empty()) {
    return absl::InvalidArgumentError(
        "--ranges_out writes computed ranges; --ranges gives them");
  }
  return task;
}

// The totals of what was read from a file.
struct FileTotals {
  int64_t rows = 0;
  int64_t positives = 0;
  int64_t bad_rows = 0;
};

// Fails unless the file can be read twice, as two passes over it need.
absl::Status CheckReadableTwice(const std::string& path) {
  struct stat info;
  if (path != "-" && (stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode) ||
                      S_ISDIR(info.st_mode))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      path == "-" ? "standard input" : path,
      " cannot be read twice: give the ranges by --ranges, and no --strict"));
}

// Turns the challenge's text files into records, one output per input. Either
// all outputs are written completely or none is, because they are moved into
// place at the end. A file without a good row is an error. Results are in the
// order of the files.
class Preprocessor {
 public:
  explicit Preprocessor(const Task& task)
      : task_(task), ranges_(task.ranges.value_or(NumericRanges{})) {}

  absl::StatusOr<std::vector<FileTotals>> Run() {
    std::vector<FileTotals> results(task_.files.size());
    std::vector<std::string> inputs;
    std::vector<FileToWrite> outputs;
    for (size_t i = 0; i < task_.files.size(); ++i) {
      if (task_.files[i].input != "-") inputs.push_back(task_.files[i].input);
      outputs.push_back({task_.files[i].output, [this, i, &results](int fd) {
                           return Convert(i, fd, &results[i]);
                         }});
    }
    if (!FLAGS_ranges_out.empty()) {
      outputs.push_back({FLAGS_ranges_out, [this](int fd) {
                           return WriteAll(
                               fd, RangesAsJson(ranges_, range_records_));
                         }});
    }
    REQUANT_RETURN_IF_ERROR(CheckFiles(inputs, outputs));
    const bool needs_ranges = task_.format == CriteoFormat::kPreprocessed ||
                              !FLAGS_ranges_out.empty();
    const bool computes_ranges = needs_ranges && !task_.ranges.has_value();
    if (computes_ranges || FLAGS_strict) {
      REQUANT_RETURN_IF_ERROR(Scan(computes_ranges));
    }
    const absl::Status written = WriteFilesAtomically(outputs);
    // A problem with an input is not reported as one with its output.
    REQUANT_RETURN_IF_ERROR(bad_input_);
    REQUANT_RETURN_IF_ERROR(written);
    return results;
  }

 private:
  // Reads a whole file; bad rows are shown at the first reading.
  absl::Status Read(
      const std::string& path, const std::string& doing, FileTotals* totals,
      const std::function<absl::Status(const CriteoRecord& record)>& use) {
    Progress progress(
        {absl::StrCat(doing, " ", path), "bytes", BytesOf(path).value_or(0)});
    const auto on_row = [&](const CriteoRecord& record, int64_t bytes) {
      ++totals->rows;
      totals->positives += record.label;
      REQUANT_RETURN_IF_ERROR(use(record));
      if (totals->rows % kRowsBetweenUpdates == 0) {
        progress.Update(bytes, absl::StrCat(HumanCount(totals->rows), " rows"));
      }
      return absl::OkStatus();
    };
    const auto on_bad_row = [&](int64_t line, std::string_view reason) {
      return OnBadRow(absl::StrCat(path, ":", line, ": ", reason), totals,
                      &progress);
    };
    REQUANT_RETURN_IF_ERROR(ReadCriteoText(path, on_row, on_bad_row));
    if (totals->rows > 0) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        path, totals->bad_rows > 0 ? " has no good row" : " has no rows"));
  }

  absl::Status OnBadRow(const std::string& message, FileTotals* totals,
                        Progress* progress) {
    constexpr int64_t kShownBadRows = 5;
    if (FLAGS_strict) {
      return absl::InvalidArgumentError(
          absl::StrCat(message, "; nothing was written (--strict)"));
    }
    if (totals->bad_rows++ < kShownBadRows && scanned_.empty()) {
      progress->Say(absl::StrCat(message, " (skipped)"));
    }
    return absl::OkStatus();
  }

  absl::Status Scan(bool computes_ranges) {
    RangeCollector collector;
    std::vector<FileTotals> scanned;
    for (const InputAndOutput& file : task_.files) {
      REQUANT_RETURN_IF_ERROR(CheckReadableTwice(file.input));
      REQUANT_RETURN_IF_ERROR(Read(file.input, "scanning",
                                   &scanned.emplace_back(),
                                   [&](const CriteoRecord& record) {
                                     collector.Add(record);
                                     return absl::OkStatus();
                                   }));
    }
    scanned_ = scanned;
    if (computes_ranges) {
      REQUANT_ASSIGN_OR_RETURN(ranges_, collector.Ranges());
      range_records_ = collector.records();
    }
    return absl::OkStatus();
  }

  absl::Status Convert(size_t index, int fd, FileTotals* totals) {
    const std::string& input = task_.files[index].input;
    CriteoWriter writer(fd, task_.format, ranges_, FLAGS_buckets);
    absl::Status full;
    const absl::Status read =
        Read(input, "converting", totals, [&](const CriteoRecord& record) {
          return full = writer.Write(record);
        });
    REQUANT_RETURN_IF_ERROR(full);
    const bool changed =
        read.ok() && !scanned_.empty() && totals->rows != scanned_[index].rows;
    bad_input_ = changed ? absl::AbortedError(absl::StrCat(
                               input, " changed while it was read"))
                         : read;
    REQUANT_RETURN_IF_ERROR(bad_input_);
    return writer.Flush();
  }

  const Task& task_;
  NumericRanges ranges_;
  int64_t range_records_ = 0;
  // Why an input could not be converted.
  absl::Status bad_input_;
  // The result of the first pass, if any, for each file.
  std::vector<FileTotals> scanned_;
};

absl::Status Preprocess(const Task& task) {
  REQUANT_ASSIGN_OR_RETURN(const std::vector<FileTotals> results,
                           Preprocessor(task).Run());
  for (size_t i = 0; i < results.size(); ++i) {
    const FileTotals& result = results[i];
    absl::FPrintF(stderr,
                  "%s: %d rows, %.3f %% positive, %d bad rows skipped\n",
                  Printable(task.files[i].output), result.rows,
                  100.0 * result.positives / result.rows, result.bad_rows);
  }
  return absl::OkStatus();
}

// Runs a command: `read` parses the command line, and `work` does the task.
int RunCommand(
    const std::vector<std::string>& args, const ProgramHelp& help,
    absl::StatusOr<Task> (*read)(const std::vector<std::string>& arguments),
    absl::Status (*work)(const Task& task)) {
  std::vector<std::string> arguments;
  if (const auto code = ParseFlags(args, help, &arguments)) return *code;
  for (const std::string& other : help.hidden_flags) {
    if (!gflags::GetCommandLineFlagInfoOrDie(other.c_str()).is_default) {
      return ReportUsage(help.name, absl::StrCat("has no flag --", other));
    }
  }
  absl::StatusOr<Task> task = read(arguments);
  if (!task.ok()) return ReportUsage(help.name, task.status().message());
  if (!FLAGS_ranges.empty()) {
    absl::StatusOr<NumericRanges> ranges = ReadRanges(FLAGS_ranges);
    if (!ranges.ok()) return ReportFailure(help.name, ranges.status());
    task->ranges = *ranges;
  }
  const absl::Status status = work(*task);
  return status.ok() ? kExitOk : ReportFailure(help.name, status);
}

int Run(const std::vector<std::string>& args) {
  if (args.empty()) {
    std::fputs(Help().c_str(), stderr);
    return kExitUsage;
  }
  const std::vector<std::string> rest(args.begin() + 1, args.end());
  if (args[0] == "synthesize") {
    return RunCommand(rest, SynthesizeHelp(), ReadSynthesize, Synthesize);
  }
  if (args[0] == "preprocess") {
    return RunCommand(rest, PreprocessHelp(), ReadPreprocess, Preprocess);
  }
  if (args[0] == "help" || args[0] == "--help" || args[0] == "-h") {
    std::fputs(Help().c_str(), stdout);
    return kExitOk;
  }
  if (args[0] == "--version") {
    std::printf("%s\n", VersionLine().c_str());
    return kExitOk;
  }
  return ReportUsage(
      ProgramName(),
      absl::StrCat("unknown command \"", args[0], "\"",
                   DidYouMean(args[0], {"preprocess", "synthesize"})));
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  requant::CleanUpWhenInterrupted(requant::ProgramName());
  return requant::FinishOutput(requant::ProgramName(),
                               requant::Run({argv + 1, argv + argc}));
}
