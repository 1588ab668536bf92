// A plugin that does not survive being loaded.

#include <cstdlib>

#include "transforms/transform.h"

namespace {

[[maybe_unused]] const bool loaded = [] {
  std::abort();
  return true;
}();

}  // namespace
