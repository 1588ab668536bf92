#ifndef REQUANT_LAUNCH_ENGINE_H_
#define REQUANT_LAUNCH_ENGINE_H_

// Docker: whether it is there, runs, and has the image.

#include <cstdint>
#include <optional>
#include <string>

#include "launch/child.h"
#include "launch/result.h"

namespace requant::launch {

struct Engine {
  // Is the client's path.
  std::string path;
  std::string version;
  // Belong to the machine that it runs containers on; 0 if they are unknown.
  int64_t cpus = 0;
  int64_t memory_bytes = 0;
};

// Returns the engine, which runs and has the image.
Result<Engine> FindEngine(const std::string& image);

// Fails if there is a container of that name already.
std::optional<Failure> CheckContainerName(const Engine& engine,
                                          const std::string& name);

// Reads what `docker info` printed; returns nullopt if the engine itself did
// not answer.
std::optional<Engine> ParseInfo(const std::string& text);

// Returns why the engine did not answer, and what to do.
Failure ExplainSilence(const Answer& answer);

// Returns why there is no such image, and what to do.
Failure ExplainMissingImage(const std::string& image, const Answer& answer);

}  // namespace requant::launch

#endif  // REQUANT_LAUNCH_ENGINE_H_
