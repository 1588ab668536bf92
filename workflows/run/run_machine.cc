#include "workflows/run/run_machine.h"

#include <sys/utsname.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/process/machine.h"
#include "base/process/subprocess.h"
#include "base/process/tensorflow_child.h"
#include "base/status_macros.h"
#include "base/version.h"

namespace requant {
namespace {

std::vector<std::string> WorkingSets(const CpuFeatures& cpu) {
  const std::pair<const char*, const InstructionSet*> sets[] = {
      {"avx2", &cpu.avx2},
      {"avx_vnni", &cpu.avx_vnni},
      {"avx512", &cpu.avx512},
      {"avx512_vnni", &cpu.avx512_vnni},
      {"amx_int8", &cpu.amx_int8}};
  std::vector<std::string> names;
  for (const auto& [name, set] : sets) {
    if (set->works) names.emplace_back(name);
  }
  return names;
}

std::string SystemName() {
  struct utsname name;
  if (uname(&name) != 0) return "";
  return absl::StrCat(name.sysname, " ", name.release, " ", name.machine);
}

}  // namespace

absl::StatusOr<RunMachine> ThisMachine() {
  RunMachine machine;
  REQUANT_ASSIGN_OR_RETURN(machine.own_path, OwnPath());
  const CpuFeatures cpu = ProbeCpu();
  machine.cores = ReadCoreLimits().usable();
  machine.target = QuantizationTarget(cpu, CachedOneDnnIsaCap());
  machine.environment = TensorFlowEnvironment();
  machine.features = WorkingSets(cpu);
  ToolRecord& tool = machine.tool;
  tool.set_version(kRequantVersion);
  tool.set_tensorflow(REQUANT_TENSORFLOW_VERSION);
  tool.set_cpu(cpu.model);
  for (const std::string& name : machine.features) tool.add_cpu_feature(name);
  tool.set_cores(machine.cores);
  tool.set_target(machine.target);
  tool.set_system(SystemName());
  return machine;
}

}  // namespace requant
