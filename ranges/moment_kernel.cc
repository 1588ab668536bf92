#include "ranges/moment_kernel.h"

#include <vector>

namespace requant {

std::vector<MomentKernel> MomentKernels() {
  std::vector<MomentKernel> kernels = {AddMomentTile};
  if (__builtin_cpu_supports("avx2")) kernels.push_back(AddMomentTileAvx2);
  if (__builtin_cpu_supports("avx512f")) {
    kernels.push_back(AddMomentTileAvx512);
  }
  return kernels;
}

}  // namespace requant
