// A plugin whose transforms do what no transform should.

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "absl/status/status.h"
#include "base/files/file.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "transforms/transform.h"

namespace {

using requant::TransformContext;
using tensorflow::GraphDef;

absl::Status ThrowException(TransformContext&, GraphDef*) {
  throw std::runtime_error("no such luck");
}
REQUANT_REGISTER_TRANSFORM(ThrowException, {"throw_exception", "Throws."});

absl::Status ThrowInt(TransformContext&, GraphDef*) { throw 7; }
REQUANT_REGISTER_TRANSFORM(ThrowInt, {"throw_int", "Throws an int."});

absl::Status Abort(TransformContext&, GraphDef*) { std::abort(); }
REQUANT_REGISTER_TRANSFORM(Abort, {"abort", "Aborts."});

absl::Status Segfault(TransformContext&, GraphDef*) {
  volatile int* nowhere = nullptr;
  return absl::InternalError(std::to_string(*nowhere));
}
REQUANT_REGISTER_TRANSFORM(Segfault, {"segfault", "Reads address 0."});

absl::Status ExitWith0(TransformContext&, GraphDef*) { std::_Exit(0); }
REQUANT_REGISTER_TRANSFORM(ExitWith0, {"exit_0", "Ends the program."});

absl::Status ShowCoreLimit(TransformContext& context, GraphDef*) {
  rlimit limit;
  getrlimit(RLIMIT_CORE, &limit);
  context.notes.push_back(std::to_string(limit.rlim_cur) + " bytes");
  return absl::OkStatus();
}
REQUANT_REGISTER_TRANSFORM(ShowCoreLimit,
                           {"show_core_limit", "Shows a limit."});

// Ends as if it were killed while writing a file.
absl::Status LeaveTemporaryFile(TransformContext& context, GraphDef*) {
  for (const std::string& path : context.parameters.All("path")) {
    const std::string name = requant::TemporaryName(path, getpid());
    std::fclose(std::fopen(name.c_str(), "w"));
  }
  if (!context.parameters.Has("wait")) kill(getpid(), SIGKILL);
  std::puts("waiting");
  std::fflush(stdout);
  while (true) pause();
}
REQUANT_REGISTER_TRANSFORM(
    LeaveTemporaryFile,
    {"leave_temporary_file",
     "Starts to write files, and dies.",
     "",
     {{"path", requant::ParameterType::kString, "The files.", "", false, true},
      {"wait", requant::ParameterType::kBool, "Wait forever instead."}}});

// Dies as oneDNN does on a CPU that lacks a feature it claims to have.
absl::Status DieWithoutCap(TransformContext& context, GraphDef*) {
  std::puts("prints");
  std::fputs("speaks\n", stderr);
  const char* cap = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (cap != nullptr && context.parameters.All("cap").front() == cap) {
    return absl::OkStatus();
  }
  const std::string name =
      requant::TemporaryName(context.parameters.All("path").front(), getpid());
  std::fclose(std::fopen(name.c_str(), "w"));
  return absl::InternalError(std::to_string(raise(SIGILL)));
}
REQUANT_REGISTER_TRANSFORM(
    DieWithoutCap,
    {"die_without_cap",
     "Dies of SIGILL unless oneDNN has that cap.",
     "",
     {{"cap", requant::ParameterType::kString, "The cap."},
      {"path", requant::ParameterType::kString, "Half-written then."}}});

}  // namespace
