#include "runtime/datasets/criteo/preprocess_command.h"

#include <gflags/gflags.h>

#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files/file.h"
#include "base/program/flags.h"
#include "base/status_macros.h"
#include "base/text/printable.h"
#include "runtime/datasets/criteo/criteo_format.h"
#include "runtime/datasets/criteo/criteo_preprocess.h"
#include "runtime/datasets/criteo/criteo_writer.h"
#include "runtime/datasets/criteo/dataset_flags.h"

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

std::string Name() { return absl::StrCat(ProgramName(), " preprocess"); }

ProgramHelp Help() {
  ProgramHelp help;
  help.name = Name();
  help.summary =
      "turns text files of the Criteo challenge (label, I1 ... I13, C1 ... "
      "C26, separated by commas or tabs, with or without a line of names) into "
      "records: numbers normalised to (x - min) / range over all files given, "
      "categories hashed as TensorFlow does. A missing number is 0, a missing "
      "category a blank.";
  help.usage =
      "$0 --out_dir=data train.csv eval.csv\n"
      "$0 --ranges=ranges.json --out=day.tfrecords "
      "day.csv";
  help.flag_files = {__FILE__, CommonFlagsFile()};
  help.footer =
      "Without --ranges the files are read twice: once for the ranges.\n"
      "Bad rows are skipped; the first five of each file are shown.";
  return help;
}

// "train" for "data/train.csv".
std::string Stem(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);
  return std::string(path.substr(0, path.rfind('.')));
}

std::string OutputName(const std::string& input, CriteoFormat format) {
  const std::string start = absl::StrCat(FLAGS_out_dir, "/dataset_");
  switch (format) {
    case CriteoFormat::kCsv:
      return absl::StrCat(start, Stem(input), ".csv");
    case CriteoFormat::kTfRecord:
      return absl::StrCat(start, "raw_", Stem(input), ".tfrecords");
    case CriteoFormat::kPreprocessed:
      return absl::StrCat(start, "preprocessed_", Stem(input), ".tfrecords");
  }
  return "";
}

absl::StatusOr<std::vector<PreprocessFile>> Files(
    const std::vector<std::string>& inputs, CriteoFormat format) {
  if (inputs.empty()) return absl::InvalidArgumentError("no file is given");
  if (!FLAGS_out.empty() && inputs.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--out is one file for ", inputs.size(), " inputs; use --out_dir"));
  }
  std::vector<PreprocessFile> files;
  std::set<std::string> outputs;
  for (const std::string& input : inputs) {
    if (input == "-" && FLAGS_out.empty()) {
      return absl::InvalidArgumentError("standard input needs --out");
    }
    const std::string output = FLAGS_out.empty()  ? OutputName(input, format)
                               : FLAGS_out == "-" ? "/dev/stdout"
                                                  : FLAGS_out;
    if (!outputs.insert(output).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two inputs would be written to ", output));
    }
    files.push_back({input, output});
  }
  return files;
}

absl::StatusOr<PreprocessOptions> ReadOptions(
    const std::vector<std::string>& inputs) {
  PreprocessOptions options;
  REQUANT_ASSIGN_OR_RETURN(options.format,
                           FormatFlag(CriteoFormat::kPreprocessed));
  REQUANT_ASSIGN_OR_RETURN(options.files, Files(inputs, options.format));
  if (!FLAGS_ranges.empty() && !FLAGS_ranges_out.empty()) {
    return absl::InvalidArgumentError(
        "--ranges_out writes computed ranges; --ranges gives them");
  }
  options.buckets = FLAGS_buckets;
  options.ranges_out = FLAGS_ranges_out;
  options.strict = FLAGS_strict;
  return options;
}

absl::Status CheckFiles(const PreprocessOptions& options) {
  std::vector<std::string> inputs, outputs;
  if (!FLAGS_ranges.empty()) inputs.push_back(FLAGS_ranges);
  for (const PreprocessFile& file : options.files) {
    if (file.input != "-") inputs.push_back(file.input);
    outputs.push_back(file.output);
  }
  if (!options.ranges_out.empty()) outputs.push_back(options.ranges_out);
  REQUANT_RETURN_IF_ERROR(CheckDistinct(inputs, outputs));
  for (const std::string& output : outputs) {
    REQUANT_RETURN_IF_ERROR(CheckWritable(output));
  }
  return absl::OkStatus();
}

absl::Status RunOptions(PreprocessOptions options) {
  if (!FLAGS_ranges.empty()) {
    REQUANT_ASSIGN_OR_RETURN(options.ranges, ReadRanges(FLAGS_ranges));
  }
  REQUANT_RETURN_IF_ERROR(CheckFiles(options));
  REQUANT_ASSIGN_OR_RETURN(const std::vector<PreprocessedFile> results,
                           Preprocess(options));
  for (size_t i = 0; i < results.size(); ++i) {
    const PreprocessedFile& result = results[i];
    absl::FPrintF(stderr,
                  "%s: %d rows, %.3f %% positive, %d bad rows skipped\n",
                  Printable(options.files[i].output), result.rows,
                  100.0 * result.positives / result.rows, result.bad_rows);
  }
  return absl::OkStatus();
}

}  // namespace

int RunPreprocess(const std::vector<std::string>& args) {
  std::vector<std::string> inputs;
  if (const auto code = ParseCommandFlags(args, Help(), &inputs)) return *code;
  const absl::StatusOr<PreprocessOptions> options = ReadOptions(inputs);
  if (!options.ok()) return ReportUsage(Name(), options.status().message());
  const absl::Status status = RunOptions(*options);
  return status.ok() ? kExitOk : ReportFailure(Name(), status);
}

}  // namespace requant
