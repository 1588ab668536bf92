// A plugin that does not survive being loaded.

#include <stdexcept>

#include "transforms/transform.h"

namespace {

[[maybe_unused]] const bool loaded = [] {
  throw std::runtime_error("no licence found");
  return true;
}();

}  // namespace
