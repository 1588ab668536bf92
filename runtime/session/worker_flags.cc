#include "runtime/session/worker_flags.h"

#include <gflags/gflags.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "runtime/session/worker.h"

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

std::string WorkerFlagsFile() { return __FILE__; }

absl::StatusOr<WorkerOptions> WorkerOptionsFromFlags() {
  WorkerOptions options;
  if (!FLAGS_memory_limit.empty()) {
    const absl::StatusOr<int64_t> bytes = ParseBytes(FLAGS_memory_limit);
    if (!bytes.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--memory_limit: ", bytes.status().message()));
    }
    options.memory_bytes = *bytes;
  }
  if (!(FLAGS_timeout >= 0) || !(FLAGS_stall_timeout >= 0)) {
    return absl::InvalidArgumentError(
        "--timeout and --stall_timeout are seconds, at least 0");
  }
  options.timeout_seconds = FLAGS_timeout;
  options.stall_seconds = FLAGS_stall_timeout;
  options.log_file = FLAGS_log_file;
  return options;
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
