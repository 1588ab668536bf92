#ifndef REQUANT_RUNTIME_SESSION_JOB_FLAGS_H_
#define REQUANT_RUNTIME_SESSION_JOB_FLAGS_H_

// The framework of all programs that run graphs, and helpers that interpret
// their flags. Defines --memory_limit, --timeout, --stall_timeout and
// --log_file.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/program/flags.h"
#include "base/program/isolation.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/session/job.pb.h"

namespace requant {

struct GraphProgram {
  // The flags of this file are added to it.
  ProgramHelp help;
  // Returns what is wrong with the flags, or "".
  std::function<std::string()> usage_error;
  // Sets what depends on flags: progress, and outputs, some of which may be "".
  std::function<void(IsolationOptions* isolation)> set_options;
  // Runs the graph, writes the files and, after StartReport, prints.
  std::function<absl::StatusOr<int>()> work;
};

// Parses the flags, does the work in a child (base/program/isolation.h), and
// returns the exit code of main.
int RunGraphProgram(int argc, char** argv, GraphProgram program);

// Returns what is wrong with --threads and --inter_op_threads, or "".
std::string ThreadsError(int threads, int inter_op_threads);

// Returns what is wrong with --format, or "".
std::string FormatError(std::string_view format);

// Fails if one of `outputs` is an input or cannot be written; must be called
// before the work. Empty paths are ignored.
absl::Status CheckOutputs(std::vector<std::string> inputs,
                          std::vector<std::string> outputs);

// Returns the parts between commas, without empty ones.
std::vector<std::string> SplitList(const std::string& list);

// Returns the graph at `path`. `tags` are separated by commas.
ModelSpec MakeModelSpec(const std::string& path, const std::string& tags,
                        const std::string& signature);

// Reads a declaration. Unless empty, `files`, separated by commas, replace its
// files, and `output` replaces its prediction's tensor. Fails if there is then
// no prediction; `use` says what it is needed for, such as "score".
absl::StatusOr<DatasetSpec> ReadJobDataset(const std::string& path,
                                           const std::string& files,
                                           const std::string& output,
                                           const std::string& use);

// Returns the bytes in "8G", "512MB", "1.5GiB" or "1000000"; K, M, G and T are
// powers of 1000, and Ki, Mi, Gi and Ti are powers of 1024.
absl::StatusOr<int64_t> ParseBytes(std::string_view text);

}  // namespace requant

#endif  // REQUANT_RUNTIME_SESSION_JOB_FLAGS_H_
