#ifndef REQUANT_BASE_FILES_MATCHING_FILES_H_
#define REQUANT_BASE_FILES_MATCHING_FILES_H_

#include <string>
#include <vector>

namespace requant {

// The existing files and folders that a shell's pattern ("eval-*.tfrecords")
// matches, by name.
std::vector<std::string> MatchingFiles(const std::string& pattern);

}  // namespace requant

#endif  // REQUANT_BASE_FILES_MATCHING_FILES_H_
