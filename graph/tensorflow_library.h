#ifndef REQUANT_GRAPH_TENSORFLOW_LIBRARY_H_
#define REQUANT_GRAPH_TENSORFLOW_LIBRARY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace requant {

// Loads libtensorflow_cc, which provides TensorFlow's op definitions, kernels,
// session factory and stock graph transforms (about 0.2 s, 300 MB of address
// space). Programs link only libtensorflow_framework and call this if they need
// more. Thread-safe; later calls return the first one's result.
absl::Status LoadTensorFlow();

// Returns the address of a symbol in libtensorflow_cc, which it loads.
absl::StatusOr<void*> TensorFlowSymbol(const std::string& mangled_name);

// Returns the folder of TensorFlow's two libraries.
absl::StatusOr<std::string> TensorFlowLibraryFolder();

}  // namespace requant

#endif  // REQUANT_GRAPH_TENSORFLOW_LIBRARY_H_
