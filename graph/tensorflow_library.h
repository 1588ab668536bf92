#ifndef REQUANT_GRAPH_TENSORFLOW_LIBRARY_H_
#define REQUANT_GRAPH_TENSORFLOW_LIBRARY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace requant {

// Opens libtensorflow_cc, which brings TensorFlow's op definitions, kernels,
// session factory and stock graph transforms into the process (about 0.2 s, 300
// MB of address space). Programs link only libtensorflow_framework and call
// this where they need more. Thread-safe; later calls return the first one's
// result.
absl::Status LoadTensorFlow();

// Returns the address of a symbol in libtensorflow_cc, which it opens.
absl::StatusOr<void*> TensorFlowSymbol(const std::string& mangled_name);

// Returns the folder of TensorFlow's two libraries.
absl::StatusOr<std::string> TensorFlowLibraryFolder();

}  // namespace requant

#endif  // REQUANT_GRAPH_TENSORFLOW_LIBRARY_H_
