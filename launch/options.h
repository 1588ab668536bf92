#ifndef REQUANT_LAUNCH_OPTIONS_H_
#define REQUANT_LAUNCH_OPTIONS_H_

// Parses the command line of launch_quantization.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/mount.h"

namespace requant::launch {

struct Options {
  std::string image = "quantization:latest";
  // The path as typed; if it is empty, which `test` allows, none is mounted.
  std::string model_dir;
  // The arguments after "--"; if empty, the image's default command runs.
  std::vector<std::string> command;
  bool test = false;
  bool verbose = false;
  bool dry_run = false;
  bool help = false;
  bool version = false;

  std::vector<Mount> volumes;
  // "NAME=VALUE", or "NAME" to use the caller's value, once for each name.
  std::vector<std::string> environment;
  // If it is empty, the container gets a unique name.
  std::string name;
  std::string network = "none";
  // If unset, they depend on the machine; 0 means no limit.
  std::optional<int64_t> memory_bytes;
  std::optional<double> cpus;
  int64_t pids_limit = 4096;
  // The capacity of each scratch folder.
  int64_t scratch_bytes = int64_t{4} << 30;
  // How long a container may take to end after SIGTERM or SIGHUP.
  double stop_seconds = 10;

  bool writable_root = false;
  bool allow_new_privileges = false;
  bool privileged = false;
  std::vector<std::string> added_capabilities;
  // If it is empty, the container runs as the calling user.
  std::string user;
};

// Parses the arguments after the program's name. Accepts --name value,
// --name=value, an unambiguous prefix of a name, underscores for dashes, -p
// value, -pvalue, -p=value, and combined letters (-vt). A Failure is a usage
// error.
Result<Options> ParseOptions(const std::vector<std::string>& arguments);

// Returns the flags that make the container less safe than the default, each
// with what it allows: "--network=host (the container can reach the network)".
std::vector<std::string> Relaxations(const Options& options);

// Returns what --help prints.
std::string HelpText();

}  // namespace requant::launch

#endif  // REQUANT_LAUNCH_OPTIONS_H_
