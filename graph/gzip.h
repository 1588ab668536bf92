#ifndef REQUANT_GRAPH_GZIP_H_
#define REQUANT_GRAPH_GZIP_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace requant {

// Whether the content starts as a gzip file does.
bool IsGzipped(std::string_view content);

// What a gzip file of one member holds. `path` is for messages. Content that is
// cut off or damaged, and one that grows beyond `max_bytes`, is an error.
absl::StatusOr<std::string> Gunzip(std::string_view content,
                                   const std::string& path, int64_t max_bytes);

}  // namespace requant

#endif  // REQUANT_GRAPH_GZIP_H_
