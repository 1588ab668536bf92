#ifndef REQUANT_RUNTIME_DATASETS_CRITEO_SYNTHESIZE_COMMAND_H_
#define REQUANT_RUNTIME_DATASETS_CRITEO_SYNTHESIZE_COMMAND_H_

#include <string>
#include <vector>

namespace requant {

// `dataset synthesize`: gets what is behind the command's name and returns the
// exit code.
int RunSynthesize(const std::vector<std::string>& args);

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_CRITEO_SYNTHESIZE_COMMAND_H_
