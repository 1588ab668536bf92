// Headers that most files of Requant include, parsed once for all of them
// (build_defs/precompiled.bzl). None of our own headers is included, so that
// changing one never recompiles everything.

#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "precompiled_absl.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor.pb.h"
