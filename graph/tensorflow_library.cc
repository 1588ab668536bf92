#include "graph/tensorflow_library.h"

#include <dlfcn.h>

#include <climits>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace requant {
namespace {

absl::StatusOr<void*> OpenLibrary() {
  REQUANT_ASSIGN_OR_RETURN(const std::string folder, TensorFlowLibraryFolder());
  const std::string path = folder + "/libtensorflow_cc.so.2";
  void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_GLOBAL);
  if (library == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("cannot open TensorFlow's library (", dlerror(),
                     "); run ./requant setup"));
  }
  return library;
}

const absl::StatusOr<void*>& Library() {
  static const auto* library = new absl::StatusOr<void*>(OpenLibrary());
  return *library;
}

}  // namespace

absl::StatusOr<std::string> TensorFlowLibraryFolder() {
  // This function, which only libtensorflow_framework defines, shows where it
  // is; both libraries are in the same folder in the wheel and the container.
  void* symbol =
      dlsym(RTLD_DEFAULT, "_ZN10tensorflow10NewSessionERKNS_14SessionOptionsE");
  Dl_info info;
  char resolved[PATH_MAX];
  if (symbol == nullptr || dladdr(symbol, &info) == 0 ||
      realpath(info.dli_fname, resolved) == nullptr) {
    return absl::NotFoundError("cannot locate libtensorflow_framework.so.2");
  }
  const std::string path = resolved;
  return path.substr(0, path.rfind('/'));
}

absl::Status LoadTensorFlow() { return Library().status(); }

absl::StatusOr<void*> TensorFlowSymbol(const std::string& mangled_name) {
  REQUANT_ASSIGN_OR_RETURN(void* library, Library());
  void* symbol = dlsym(library, mangled_name.c_str());
  if (symbol == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("this TensorFlow library has no symbol ", mangled_name));
  }
  return symbol;
}

}  // namespace requant
