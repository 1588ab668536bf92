#ifndef REQUANT_LAUNCH_ENGINE_H_
#define REQUANT_LAUNCH_ENGINE_H_

// Docker or Podman: whether it is there, runs, and has the image.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/child.h"
#include "launch/options.h"
#include "launch/result.h"

namespace requant::launch {

enum class EngineKind { kDocker, kPodman };

struct Engine {
  EngineKind kind = EngineKind::kDocker;
  // The client's path.
  std::string path;
  std::string version;
  // Of the machine that it runs containers on; 0: unknown.
  int64_t cpus = 0;
  int64_t memory_bytes = 0;
  // Its root is not the machine's root.
  bool rootless = false;
  // Docker's userns-remap: users of containers are other users outside.
  bool remaps_users = false;
  // Without a relabelling of the user's files, containers cannot read them.
  bool selinux = false;
  // Which limits it can keep.
  bool limits_memory = true;
  bool limits_cpus = true;
  bool limits_pids = true;
};

// What an engine calls itself in messages: "Docker", "Podman".
std::string EngineName(EngineKind kind);

// The engine that `options` ask for, running and with the image.
Result<Engine> ChooseEngine(const Options& options);

// A Failure when there is a container of that name already.
std::optional<Failure> CheckContainerName(const Engine& engine,
                                          const std::string& name);

// Reads what `docker info` or `podman info` printed for InfoFormat; nullopt
// when the engine itself did not answer.
std::optional<Engine> ParseInfo(EngineKind kind, const std::string& text);
std::string InfoFormat(EngineKind kind);

// Why an engine did not answer, and what to do.
Failure ExplainSilence(EngineKind kind, const Answer& answer);

// Why there is no such image.
Failure ExplainMissingImage(EngineKind kind, const std::string& image,
                            const Answer& answer);

}  // namespace requant::launch

#endif  // REQUANT_LAUNCH_ENGINE_H_
