#include "graph/graph_io.h"

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files/file.h"
#include "base/message/text_proto.h"
#include "base/records/input_file.h"
#include "base/status_macros.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl.h"
#include "google/protobuf/text_format.h"
#include "re2/re2.h"

namespace requant {
namespace {

using google::protobuf::Message;
using tensorflow::GraphDef;
using tensorflow::MetaGraphDef;
using tensorflow::SavedModel;

// Messages nested deeper than this are refused because the parsers recurse.
constexpr int kMaxNesting = 100;

// Parse a message unless it is nested deeper than any real one. Errors in a
// text name the path and the line.
absl::Status ParseText(const std::string& text, const std::string& path,
                       Message* message) {
  std::string error;
  TextProtoOptions options;
  options.max_nesting = kMaxNesting;
  const auto keep_first = [&](int line, int column, std::string_view problem) {
    if (!error.empty()) return;
    error = line == 0 ? std::string(problem)
                      : absl::StrCat(line, ":", column, ": ", problem);
  };
  if (ParseTextProto(text, options, keep_first, message)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      path, ":", error, " (in a text ", message->GetDescriptor()->name(), ")"));
}

bool ParseBinary(std::string_view bytes, Message* message) {
  google::protobuf::io::CodedInputStream input(
      reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  input.SetTotalBytesLimit(std::numeric_limits<int>::max());
  input.SetRecursionLimit(kMaxNesting);
  return message->ParseFromCodedStream(&input) && input.ConsumedEntireMessage();
}

bool HasUnknownFields(const Message& message) {
  return !message.GetReflection()->GetUnknownFields(message).empty();
}

absl::Status NotAGraph(const std::string& path) {
  return absl::InvalidArgumentError(absl::StrCat(
      path,
      " is not a TensorFlow graph: expected a binary or text GraphDef, a "
      "MetaGraphDef or a SavedModel directory"));
}

absl::StatusOr<GraphDef> ParseGraph(const std::string& content,
                                    const std::string& path) {
  if (content.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is empty"));
  }
  GraphDef graph;
  if (LooksLikeText(content)) {
    absl::Status status = ParseText(content, path, &graph);
    if (status.ok()) return graph;
    MetaGraphDef meta;
    if (ParseText(content, path, &meta).ok()) return meta.graph_def();
    return status;
  }
  // A MetaGraphDef or SavedModel may happen to parse as a GraphDef with no
  // nodes and with unknown fields, which no real GraphDef looks like.
  if (ParseBinary(content, &graph) &&
      (graph.node_size() > 0 || !HasUnknownFields(graph))) {
    return graph;
  }
  MetaGraphDef meta;
  if (ParseBinary(content, &meta) && meta.graph_def().node_size() > 0) {
    return std::move(*meta.mutable_graph_def());
  }
  return NotAGraph(path);
}

bool IsDirectory(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

absl::StatusOr<std::string> ReadSavedModelBytes(const std::string& directory,
                                                std::string* path) {
  for (const char* name : {"/saved_model.pb", "/saved_model.pbtxt"}) {
    *path = directory + name;
    REQUANT_RETURN_IF_ERROR(CheckRegular(*path));
    auto content = ReadFile(*path, kMaxGraphBytes);
    if (absl::IsNotFound(content.status())) continue;
    if (absl::IsOutOfRange(content.status())) {
      return absl::OutOfRangeError(absl::StrCat(
          *path,
          " is larger than the 2 GB that a protocol buffer holds; keep the "
          "model's weights in variables, not in its graph"));
    }
    if (content.ok() && content->empty()) {
      return absl::InvalidArgumentError(absl::StrCat(*path, " is empty"));
    }
    return content;
  }
  if (access((directory + "/saved_model.cpb").c_str(), F_OK) == 0) {
    return absl::UnimplementedError(absl::StrCat(
        directory,
        "/saved_model.cpb is a SavedModel in chunks, for graphs beyond 2 GB; "
        "save the model with its weights in variables, not in its graph"));
  }
  return absl::NotFoundError(absl::StrCat(
      directory,
      " is a directory without saved_model.pb or saved_model.pbtxt; name a "
      "graph file or a SavedModel directory"));
}

absl::StatusOr<int> ChooseByTags(const SavedModel& model,
                                 const std::set<std::string>& tags,
                                 const std::string& directory) {
  const std::set<std::string> wanted =
      tags.empty() ? std::set<std::string>{"serve"} : tags;
  std::vector<std::string> lists;
  for (int i = 0; i < model.meta_graphs_size(); ++i) {
    const auto& present = model.meta_graphs(i).meta_info_def().tags();
    const bool only = tags.empty() && model.meta_graphs_size() == 1;
    if (only ||
        std::set<std::string>(present.begin(), present.end()) == wanted) {
      return i;
    }
    lists.push_back(absl::StrCat("{", absl::StrJoin(present, ", "), "}"));
  }
  return absl::NotFoundError(
      absl::StrCat(directory, " has no graph tagged {",
                   absl::StrJoin(wanted, ", "), "}; it has ",
                   lists.empty() ? "none at all" : absl::StrJoin(lists, ", ")));
}

absl::Status TooLarge(const GraphDef& graph) {
  return absl::OutOfRangeError(absl::StrCat(
      "the graph takes ", graph.ByteSizeLong(),
      " bytes; a protocol buffer holds at most 2 GB, so keep its weights in "
      "a SavedModel's variables"));
}

bool SerializeBinary(const Message& message,
                     google::protobuf::io::ZeroCopyOutputStream* out) {
  google::protobuf::io::CodedOutputStream coded(out);
  coded.SetSerializationDeterministic(true);
  return message.SerializePartialToCodedStream(&coded) && !coded.HadError();
}

}  // namespace

std::string SavedModelDirectory(const std::string& path) {
  if (IsDirectory(path)) return path;
  const size_t slash = path.rfind('/');
  const std::string base =
      slash == std::string::npos ? path : path.substr(slash + 1);
  if (base != "saved_model.pb" && base != "saved_model.pbtxt") return "";
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

bool IsSavedModelDirectory(const std::string& path) {
  return IsDirectory(path) &&
         (access((path + "/saved_model.pb").c_str(), F_OK) == 0 ||
          access((path + "/saved_model.pbtxt").c_str(), F_OK) == 0);
}

// Returns whether the content starts like a text message: with a field name and
// ":", "{", "<" or "[" after spaces and comments; or ends in a comment.
bool LooksLikeText(std::string_view content) {
  // Comments may contain bytes that are not UTF-8.
  static const RE2* const start = new RE2(
      R"(\A(?:[\s\v]|#[^\n]*\n)*(?:\w+[ \t]*[:{<\[]|#[^\n]*\z))", RE2::Latin1);
  return RE2::PartialMatch(content, *start);
}

absl::StatusOr<SavedModelContent> ReadSavedModelContent(
    const std::string& directory, const std::set<std::string>& tags) {
  SavedModelContent file;
  REQUANT_ASSIGN_OR_RETURN(file.bytes,
                           ReadSavedModelBytes(directory, &file.path));
  file.is_text = LooksLikeText(file.bytes);
  if (file.is_text) {
    REQUANT_RETURN_IF_ERROR(ParseText(file.bytes, file.path, &file.model));
  } else if (!ParseBinary(file.bytes, &file.model)) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.path, " is damaged: it is not a SavedModel message"));
  }
  REQUANT_ASSIGN_OR_RETURN(file.chosen,
                           ChooseByTags(file.model, tags, directory));
  return file;
}

absl::StatusOr<MetaGraphDef> ReadSavedModel(const std::string& directory,
                                            const std::set<std::string>& tags) {
  REQUANT_ASSIGN_OR_RETURN(SavedModelContent file,
                           ReadSavedModelContent(directory, tags));
  return std::move(*file.model.mutable_meta_graphs(file.chosen));
}

absl::Status CheckModelFormat(const std::string& path) {
  struct Format {
    const char* ending;
    const char* advice;
  };
  constexpr char kKeras[] =
      "a model of Keras: write it as a SavedModel, in Python, by "
      "keras.models.load_model(FILE).export(FOLDER)";
  for (const Format& format :
       {Format{".keras", kKeras}, Format{".h5", kKeras},
        Format{".hdf5", kKeras},
        Format{".onnx",
               "an ONNX model: use the SavedModel that it was made from, or "
               "make one of it with onnx2tf"},
        Format{".tflite",
               "a TensorFlow Lite model, which cannot be turned back: use the "
               "SavedModel that it was made from"}}) {
    if (!absl::EndsWithIgnoreCase(path, format.ending)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is ", format.advice));
  }
  return absl::OkStatus();
}

absl::StatusOr<GraphDef> ReadGraph(const std::string& path,
                                   const std::set<std::string>& tags) {
  const std::string directory = SavedModelDirectory(path);
  if (directory.empty()) REQUANT_RETURN_IF_ERROR(CheckModelFormat(path));
  if (!directory.empty()) {
    REQUANT_ASSIGN_OR_RETURN(MetaGraphDef meta,
                             ReadSavedModel(directory, tags));
    return std::move(*meta.mutable_graph_def());
  }
  REQUANT_ASSIGN_OR_RETURN(std::string content, ReadFile(path, kMaxGraphBytes));
  if (IsGzipped(content)) {
    REQUANT_ASSIGN_OR_RETURN(content, Gunzip(content, path, kMaxGraphBytes));
  }
  return ParseGraph(content, path);
}

std::string DeterministicBytes(const Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  SerializeBinary(message, &stream);
  return bytes;
}

bool SameMessage(const Message& a, const Message& b) {
  return a.ByteSizeLong() == b.ByteSizeLong() &&
         DeterministicBytes(a) == DeterministicBytes(b);
}

absl::StatusOr<std::string> SerializeGraph(const GraphDef& graph) {
  if (graph.ByteSizeLong() > static_cast<size_t>(kMaxGraphBytes)) {
    return TooLarge(graph);
  }
  return DeterministicBytes(graph);
}

absl::Status WriteGraph(const GraphDef& graph, const std::string& path,
                        GraphFormat format) {
  if (graph.ByteSizeLong() > static_cast<size_t>(kMaxGraphBytes)) {
    return TooLarge(graph);
  }
  return WriteFileAtomically(path, [&](int fd) -> absl::Status {
    google::protobuf::io::FileOutputStream out(fd, 1 << 20);
    const bool written = format == GraphFormat::kBinary
                             ? SerializeBinary(graph, &out)
                             : google::protobuf::TextFormat::Print(graph, &out);
    out.Flush();
    if (out.GetErrno() != 0) {
      return absl::ResourceExhaustedError(std::strerror(out.GetErrno()));
    }
    return written ? absl::OkStatus()
                   : absl::ResourceExhaustedError(
                         "the graph could not be serialized");
  });
}

}  // namespace requant
