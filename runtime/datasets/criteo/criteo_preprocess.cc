#include "runtime/datasets/criteo/criteo_preprocess.h"

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "base/terminal/progress.h"
#include "runtime/datasets/criteo/criteo_csv.h"
#include "runtime/datasets/criteo/criteo_format.h"
#include "runtime/datasets/criteo/criteo_writer.h"

namespace requant {
namespace {

// Bad rows shown of each file.
constexpr int64_t kShownBadRows = 5;
// The clock is not read for every row.
constexpr int64_t kRowsBetweenUpdates = 4096;

using RecordFunction = std::function<absl::Status(const CriteoRecord& record)>;

int64_t FileSize(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) ? info.st_size
                                                                 : 0;
}

// Two passes over one file need a file that can be read twice.
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

class Preprocessor {
 public:
  explicit Preprocessor(const PreprocessOptions& options) : options_(options) {}

  absl::StatusOr<std::vector<PreprocessedFile>> Run() {
    ranges_ = options_.ranges.value_or(NumericRanges{});
    const bool needs_ranges = options_.format == CriteoFormat::kPreprocessed ||
                              !options_.ranges_out.empty();
    const bool computes_ranges = needs_ranges && !options_.ranges.has_value();
    if (computes_ranges || options_.strict) {
      REQUANT_RETURN_IF_ERROR(Scan(computes_ranges));
    }
    std::vector<PreprocessedFile> results(options_.files.size());
    std::vector<FileToWrite> outputs;
    for (size_t i = 0; i < options_.files.size(); ++i) {
      outputs.push_back({options_.files[i].output, [this, i, &results](int fd) {
                           return Convert(i, fd, &results[i]);
                         }});
    }
    if (!options_.ranges_out.empty()) {
      outputs.push_back({options_.ranges_out, [this](int fd) {
                           return WriteAll(
                               fd, RangesAsJson(ranges_, range_records_));
                         }});
    }
    const absl::Status written = WriteFilesAtomically(outputs);
    // What is wrong with an input is not told as trouble with its output.
    REQUANT_RETURN_IF_ERROR(bad_input_);
    REQUANT_RETURN_IF_ERROR(written);
    return results;
  }

 private:
  // Reads a file through; bad rows are shown at the first reading.
  absl::Status Read(const std::string& path, const std::string& doing,
                    const RecordFunction& use, PreprocessedFile* totals) {
    Progress progress(
        {absl::StrCat(doing, " ", path), "bytes", FileSize(path)});
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
    if (options_.strict) {
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
    CriteoWriter writer(fd, options_.format, ranges_, options_.buckets);
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

}  // namespace

absl::StatusOr<std::vector<PreprocessedFile>> Preprocess(
    const PreprocessOptions& options) {
  return Preprocessor(options).Run();
}

}  // namespace requant
