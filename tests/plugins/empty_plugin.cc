// A plugin that registers nothing.

#include "transforms/transform.h"
