#include "runtime/datasets/criteo/dataset_commands.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "runtime/datasets/criteo/criteo_format.h"

DEFINE_string(format, "",
              "What to write. \"csv\": the challenge's text (synthesize, by "
              "default); \"tfrecord\": records with features label, I1 ... "
              "I13, C1 ... C26; \"preprocessed\": records with features label, "
              "numeric_1, string_1 (preprocess, by default).");
DEFINE_string(out, "", "The file to write; \"-\" for standard output.");
DEFINE_string(ranges, "",
              "Normalise the numeric columns by the ranges in this file, which "
              "preprocess --ranges_out wrote.");
DEFINE_int64(buckets, requant::kDefaultBuckets,
             "Hash buckets per categorical column of preprocessed records.");

namespace requant {
namespace {

constexpr char kOwnFolder[] = "runtime/datasets/";

bool IsForeign(const gflags::CommandLineFlagInfo& flag,
               const ProgramHelp& help) {
  return absl::StrContains(flag.filename, kOwnFolder) &&
         std::none_of(help.flag_files.begin(), help.flag_files.end(),
                      [&](const std::string& file) {
                        return absl::EndsWith(flag.filename, file);
                      });
}

}  // namespace

std::string CommonFlagsFile() { return __FILE__; }

std::optional<int> ParseCommandFlags(const std::vector<std::string>& args,
                                     const ProgramHelp& help,
                                     std::vector<std::string>* positional) {
  if (const auto code = ParseFlags(args, help, positional)) return code;
  std::vector<gflags::CommandLineFlagInfo> flags;
  gflags::GetAllFlags(&flags);
  for (const gflags::CommandLineFlagInfo& flag : flags) {
    if (!flag.is_default && IsForeign(flag, help)) {
      return ReportUsage(help.name, absl::StrCat("has no flag --", flag.name));
    }
  }
  return std::nullopt;
}

absl::StatusOr<CriteoFormat> FormatFlag(CriteoFormat standard) {
  if (FLAGS_buckets < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--buckets is at least 1, not ", FLAGS_buckets));
  }
  if (FLAGS_format.empty()) return standard;
  const auto format = CriteoFormatNamed(FLAGS_format);
  if (format.has_value()) return *format;
  return absl::InvalidArgumentError(
      absl::StrCat("--format is \"csv\", \"tfrecord\" or \"preprocessed\", "
                   "not \"",
                   FLAGS_format, "\""));
}

absl::Status CheckFiles(std::vector<std::string> inputs,
                        const std::vector<std::string>& outputs) {
  if (!FLAGS_ranges.empty()) inputs.push_back(FLAGS_ranges);
  REQUANT_RETURN_IF_ERROR(CheckDistinct(inputs, outputs));
  for (const std::string& output : outputs) {
    REQUANT_RETURN_IF_ERROR(CheckWritable(output));
  }
  return absl::OkStatus();
}

}  // namespace requant
