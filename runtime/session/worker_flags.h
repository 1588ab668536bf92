#ifndef REQUANT_RUNTIME_SESSION_WORKER_FLAGS_H_
#define REQUANT_RUNTIME_SESSION_WORKER_FLAGS_H_

// The flags of every program that runs graphs in a worker: --memory_limit,
// --timeout, --stall_timeout, --log_file.

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/session/worker.h"

namespace requant {

// The file that defines them, for ProgramHelp::flag_files.
std::string WorkerFlagsFile();

// What the flags say; the error is one of usage.
absl::StatusOr<WorkerOptions> WorkerOptionsFromFlags();

// Bytes in "8G", "512MB", "1.5GiB" or "1000000"; K, M, G and T are powers of
// 1000, Ki, Mi, Gi and Ti of 1024.
absl::StatusOr<int64_t> ParseBytes(std::string_view text);

}  // namespace requant

#endif  // REQUANT_RUNTIME_SESSION_WORKER_FLAGS_H_
