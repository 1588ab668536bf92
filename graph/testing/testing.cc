#include "graph/testing/testing.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "google/protobuf/text_format.h"
#include "graph/tensorflow_library.h"
#include "graph/testing/graph_text.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/public/session.h"
#include "xla/tsl/lib/io/zlib_compression_options.h"
#include "xla/tsl/lib/io/zlib_outputbuffer.h"

namespace requant {

using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::Tensor;

GraphDef GraphFromText(const std::string& text) {
  GraphDef graph;
  const std::string whole = GraphText(text);
  // Unlike ParseFromString, this allows the library in several pieces.
  if (!google::protobuf::TextFormat::MergeFromString(whole, &graph)) {
    ADD_FAILURE() << "the test's graph does not parse:\n" << whole;
  }
  return graph;
}

const NodeDef& NodeNamed(const GraphDef& graph, const std::string& name) {
  for (const NodeDef& node : graph.node()) {
    if (node.name() == name) return node;
  }
  ADD_FAILURE() << "no node named " << name;
  return NodeDef::default_instance();
}

bool HasNode(const GraphDef& graph, const std::string& name) {
  for (const NodeDef& node : graph.node()) {
    if (node.name() == name) return true;
  }
  return false;
}

absl::StatusOr<std::vector<Tensor>> RunGraph(
    const GraphDef& graph,
    const std::vector<std::pair<std::string, Tensor>>& feeds,
    const std::vector<std::string>& fetches) {
  REQUANT_RETURN_IF_ERROR(LoadTensorFlow());
  std::unique_ptr<tensorflow::Session> session(
      tensorflow::NewSession(tensorflow::SessionOptions()));
  if (session == nullptr) return absl::InternalError("no session");
  REQUANT_RETURN_IF_ERROR(session->Create(graph));
  std::vector<Tensor> outputs;
  REQUANT_RETURN_IF_ERROR(session->Run(feeds, fetches, {}, &outputs));
  return outputs;
}

std::string Gzip(const std::string& content) {
  constexpr int kBufferBytes = 1 << 16;
  const std::string path =
      absl::StrCat(testing::TempDir(), "/packed.", getpid(), ".gz");
  std::unique_ptr<tensorflow::WritableFile> file;
  EXPECT_TRUE(tensorflow::Env::Default()->NewWritableFile(path, &file).ok());
  tsl::io::ZlibOutputBuffer packer(file.get(), kBufferBytes, kBufferBytes,
                                   tsl::io::ZlibCompressionOptions::GZIP());
  EXPECT_TRUE(packer.Init().ok());
  EXPECT_TRUE(packer.Append(content).ok());
  EXPECT_TRUE(packer.Close().ok());
  EXPECT_TRUE(file->Close().ok());
  auto packed = ReadFile(path);
  std::remove(path.c_str());
  EXPECT_TRUE(packed.ok()) << packed.status();
  return packed.ok() ? *std::move(packed) : "";
}

}  // namespace requant
