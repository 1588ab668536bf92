// Headers that most tests of Requant include, parsed once for all of them.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "precompiled.h"
