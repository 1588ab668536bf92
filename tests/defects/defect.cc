#include "tests/defects/defect.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "graph/graph_index.h"
#include "graph/graph_io.h"
#include "logs_parser/log_parser.h"
#include "ranges/range_table.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace requant {
namespace {

// The files that a stage made, distinguished by content.
struct Files {
  std::string graph, log, ranges;
};

absl::StatusOr<Files> Sort(const std::vector<std::string>& paths) {
  Files files;
  for (const std::string& path : paths) {
    REQUANT_ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
    if (StartsLikeRangeTable(content)) {
      files.ranges = path;
    } else if (absl::StrContains(content.substr(0, 4096), "__print__;__")) {
      files.log = path;
    } else if (files.graph.empty()) {
      files.graph = path;
    }
  }
  return files;
}

absl::Status NoFile(const char* what) {
  return absl::NotFoundError(
      absl::StrCat("the defect is planted in ", what, ", and none is given"));
}

absl::StatusOr<std::string> EditGraph(GraphEdit edit, const Files& files) {
  if (files.graph.empty()) return NoFile("a graph");
  REQUANT_ASSIGN_OR_RETURN(tensorflow::GraphDef graph, ReadGraph(files.graph));
  REQUANT_ASSIGN_OR_RETURN(GraphIndex index, GraphIndex::Create(&graph));
  REQUANT_ASSIGN_OR_RETURN(std::string done, edit(&index));
  index.Commit();
  REQUANT_RETURN_IF_ERROR(WriteGraph(graph, files.graph, GraphFormat::kBinary));
  return done;
}

absl::StatusOr<std::string> EditLog(LogEdit edit, const Files& files) {
  if (files.log.empty()) return NoFile("a log");
  REQUANT_ASSIGN_OR_RETURN(std::string text, ReadFile(files.log));
  REQUANT_ASSIGN_OR_RETURN(std::string done, edit(&text));
  REQUANT_RETURN_IF_ERROR(WriteFileAtomically(files.log, text));
  if (!files.ranges.empty()) {
    REQUANT_RETURN_IF_ERROR(
        WriteRangeTable(ParseLogText(text).ranges, files.ranges));
  }
  return done;
}

absl::StatusOr<std::string> EditRanges(RangesEdit edit, const Files& files) {
  if (files.ranges.empty()) return NoFile("a RangeTable");
  REQUANT_ASSIGN_OR_RETURN(RangeTable table, ReadRangeTable(files.ranges));
  REQUANT_ASSIGN_OR_RETURN(std::string done, edit(&table));
  REQUANT_RETURN_IF_ERROR(WriteRangeTable(table, files.ranges));
  return done;
}

}  // namespace

std::vector<Defect> AllDefects() {
  std::vector<Defect> all;
  for (const auto part : {FloatDefects, QuantizeDefects, RangeDefects,
                          FuseDefects, FastDefects}) {
    std::vector<Defect> defects = part();
    all.insert(all.end(), defects.begin(), defects.end());
  }
  return all;
}

absl::StatusOr<std::string> Plant(const Defect& defect,
                                  const std::vector<std::string>& paths) {
  REQUANT_ASSIGN_OR_RETURN(const Files files, Sort(paths));
  if (const auto* edit = std::get_if<GraphEdit>(&defect.edit)) {
    return EditGraph(*edit, files);
  }
  if (const auto* edit = std::get_if<LogEdit>(&defect.edit)) {
    return EditLog(*edit, files);
  }
  return EditRanges(std::get<RangesEdit>(defect.edit), files);
}

}  // namespace requant
