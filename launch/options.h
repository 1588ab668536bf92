#ifndef REQUANT_LAUNCH_OPTIONS_H_
#define REQUANT_LAUNCH_OPTIONS_H_

// The command line of launch_quantization.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/mount.h"

namespace requant::launch {

struct Options {
  std::string image = "quantization:latest";
  // As it was typed; if it is empty, which `test` allows, none is mounted.
  std::string model_dir;
  // What follows "--"; if it is empty, the image's default command runs.
  std::vector<std::string> command;
  bool test = false;
  bool verbose = false;
  bool dry_run = false;
  bool help = false;
  bool version = false;

  std::vector<Mount> volumes;
  // "NAME=VALUE", or "NAME" for the caller's value, once for each name.
  std::vector<std::string> environment;
  // If it is empty, the container gets a name that no other session has.
  std::string name;
  std::string network = "none";
  // If they are unset, they depend on the machine; 0 means no limit.
  std::optional<int64_t> memory_bytes;
  std::optional<double> cpus;
  int64_t pids_limit = 4096;
  // What each of the scratch folders can hold.
  int64_t scratch_bytes = int64_t{4} << 30;
  // How long a container may take to end after SIGTERM or SIGHUP.
  double stop_seconds = 10;

  bool writable_root = false;
  bool allow_new_privileges = false;
  bool privileged = false;
  std::vector<std::string> added_capabilities;
  // If it is empty, the container runs as the caller.
  std::string user;
};

// Reads the arguments after the program's name. Accepts --name value,
// --name=value, the beginning of a name that only one flag has, underscores for
// dashes, -p value, -pvalue, -p=value, and several letters in one (-vt). A
// Failure is an error of usage.
Result<Options> ParseOptions(const std::vector<std::string>& arguments);

// Returns the flags that make the container less safe than it is by default,
// each with what it allows: "--network=host (the container can reach the
// network)".
std::vector<std::string> Relaxations(const Options& options);

// Returns what --help prints.
std::string HelpText();

}  // namespace requant::launch

#endif  // REQUANT_LAUNCH_OPTIONS_H_
