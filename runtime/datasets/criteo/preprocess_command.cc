#include <gflags/gflags.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
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
#include "base/program/flags.h"
#include "base/status_macros.h"
#include "base/terminal/progress.h"
#include "base/text/printable.h"
#include "runtime/datasets/criteo/criteo_files.h"
#include "runtime/datasets/criteo/criteo_format.h"
#include "runtime/datasets/criteo/dataset_commands.h"

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

struct PreprocessFile {
  std::string input;
  std::string output;
};

struct PreprocessOptions {
  std::vector<PreprocessFile> files;
  CriteoFormat format = CriteoFormat::kPreprocessed;
  // Unset: those of all inputs together, which are then read twice.
  std::optional<NumericRanges> ranges;
};

struct PreprocessedFile {
  int64_t rows = 0;
  int64_t positives = 0;
  int64_t bad_rows = 0;
};

// Bad rows shown of each file.
constexpr int64_t kShownBadRows = 5;
// The clock is not read for every row.
constexpr int64_t kRowsBetweenUpdates = 4096;

using RecordFunction = std::function<absl::Status(const CriteoRecord& record)>;

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

// Turns the challenge's text files into records, one output per input. All
// outputs are written whole or none is: they are put in their places at the
// end. A file without a good row is an error. The results are in the order of
// the files.
class Preprocessor {
 public:
  explicit Preprocessor(const PreprocessOptions& options) : options_(options) {}

  absl::StatusOr<std::vector<PreprocessedFile>> Run() {
    ranges_ = options_.ranges.value_or(NumericRanges{});
    const bool needs_ranges = options_.format == CriteoFormat::kPreprocessed ||
                              !FLAGS_ranges_out.empty();
    const bool computes_ranges = needs_ranges && !options_.ranges.has_value();
    if (computes_ranges || FLAGS_strict) {
      REQUANT_RETURN_IF_ERROR(Scan(computes_ranges));
    }
    std::vector<PreprocessedFile> results(options_.files.size());
    std::vector<FileToWrite> outputs;
    for (size_t i = 0; i < options_.files.size(); ++i) {
      outputs.push_back({options_.files[i].output, [this, i, &results](int fd) {
                           return Convert(i, fd, &results[i]);
                         }});
    }
    if (!FLAGS_ranges_out.empty()) {
      outputs.push_back({FLAGS_ranges_out, [this](int fd) {
                           return WriteAll(
                               fd, RangesAsJson(ranges_, range_records_));
                         }});
    }
    const absl::Status written = WriteFilesAtomically(outputs);
    // What is wrong with an input is not reported as trouble with its output.
    REQUANT_RETURN_IF_ERROR(bad_input_);
    REQUANT_RETURN_IF_ERROR(written);
    return results;
  }

 private:
  // Reads a file through; bad rows are shown at the first reading.
  absl::Status Read(const std::string& path, const std::string& doing,
                    const RecordFunction& use, PreprocessedFile* totals) {
    Progress progress(
        {absl::StrCat(doing, " ", path), "bytes", BytesOf(path).value_or(0)});
    const auto on_bad_row = [&](int64_t line, std::string_view reason) {
      return OnBadRow(absl::StrCat(path, ":", line, ": ", reason), totals,
                      &progress);
    };
    REQUANT_ASSIGN_OR_RETURN(const std::unique_ptr<CriteoCsvReader> reader,
                             CriteoCsvReader::Open(path, on_bad_row));
    CriteoRecord record;
    for (;;) {
      REQUANT_ASSIGN_OR_RETURN(const bool more, reader->Next(&record));
      if (!more) break;
      ++totals->rows;
      totals->positives += record.label;
      REQUANT_RETURN_IF_ERROR(use(record));
      if (totals->rows % kRowsBetweenUpdates == 0) {
        progress.Update(reader->bytes(),
                        absl::StrCat(HumanCount(totals->rows), " rows"));
      }
    }
    if (totals->rows > 0) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        path, totals->bad_rows > 0 ? " has no good row" : " has no rows"));
  }

  absl::Status OnBadRow(const std::string& message, PreprocessedFile* totals,
                        Progress* progress) {
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
    std::vector<PreprocessedFile> scanned;
    for (const PreprocessFile& file : options_.files) {
      REQUANT_RETURN_IF_ERROR(CheckReadableTwice(file.input));
      const auto use = [&](const CriteoRecord& record) {
        collector.Add(record);
        return absl::OkStatus();
      };
      REQUANT_RETURN_IF_ERROR(
          Read(file.input, "scanning", use, &scanned.emplace_back()));
    }
    scanned_ = scanned;
    if (computes_ranges) {
      REQUANT_ASSIGN_OR_RETURN(ranges_, collector.Ranges());
      range_records_ = collector.records();
    }
    return absl::OkStatus();
  }

  absl::Status Convert(size_t index, int fd, PreprocessedFile* totals) {
    const PreprocessFile& file = options_.files[index];
    CriteoWriter writer(fd, options_.format, ranges_, FLAGS_buckets);
    absl::Status full;
    absl::Status read = Read(
        file.input, "converting",
        [&](const CriteoRecord& record) { return full = writer.Write(record); },
        totals);
    REQUANT_RETURN_IF_ERROR(full);
    if (read.ok() && !scanned_.empty() &&
        totals->rows != scanned_[index].rows) {
      read = absl::AbortedError(
          absl::StrCat(file.input, " changed while it was read"));
    }
    bad_input_ = read;
    REQUANT_RETURN_IF_ERROR(read);
    return writer.Flush();
  }

  const PreprocessOptions& options_;
  NumericRanges ranges_;
  int64_t range_records_ = 0;
  // Why an input could not be converted.
  absl::Status bad_input_;
  // What the first pass, if there is one, found in each file.
  std::vector<PreprocessedFile> scanned_;
};

// Returns "train" for "data/train.csv".
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
  return options;
}

absl::Status RunOptions(PreprocessOptions options) {
  if (!FLAGS_ranges.empty()) {
    REQUANT_ASSIGN_OR_RETURN(options.ranges, ReadRanges(FLAGS_ranges));
  }
  std::vector<std::string> inputs, outputs;
  for (const PreprocessFile& file : options.files) {
    if (file.input != "-") inputs.push_back(file.input);
    outputs.push_back(file.output);
  }
  if (!FLAGS_ranges_out.empty()) outputs.push_back(FLAGS_ranges_out);
  REQUANT_RETURN_IF_ERROR(CheckFiles(inputs, outputs));
  REQUANT_ASSIGN_OR_RETURN(const std::vector<PreprocessedFile> results,
                           Preprocessor(options).Run());
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
