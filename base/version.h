#ifndef REQUANT_BASE_VERSION_H_
#define REQUANT_BASE_VERSION_H_

#include <string>

#include "base/text/requant_version.h"

namespace requant {

// Returns what --version prints: "requant VERSION (TensorFlow VERSION)".
inline std::string VersionLine() {
  return std::string("requant ") + kRequantVersion + " (TensorFlow " +
         REQUANT_TENSORFLOW_VERSION + ")";
}

}  // namespace requant

#endif  // REQUANT_BASE_VERSION_H_
