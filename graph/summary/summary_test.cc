#include <map>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/json.h"
#include "base/testing/golden_cases.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/json_util.h"
#include "graph/summary/summarize.h"
#include "graph/testing/testing.h"
#include "re2/re2.h"

namespace requant::summary_test {
namespace {

// The start of many graphs: x → dense (weights w), and the labels y.
constexpr char kModel[] =
    "x = Placeholder; y = Placeholder; w = VariableV2; dense = MatMul(x, w)\n";

std::string JsonOf(const GraphSummary& summary, const std::string& path,
                   const GraphDef* structure) {
  const std::string json = JsonReport(summary, path, structure);
  google::protobuf::Struct parsed;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &parsed).ok())
      << json;
  return IndentedJson(json);
}

// Makes the report of a case: lines with settings, those of a graph, then
// optionally "meta:" and a text MetaGraphDef. The settings are the graph's
// path, what a SavedModel's caller knows, which report to make, and which of
// its lines to show.
std::string ReportOf(const std::string& input) {
  static const RE2 setting("(path|saved_model|tags|show|only): (.*)\n");
  std::map<std::string, std::string> settings = {{"path", "g.pb"}};
  const std::string text = absl::StrCat(input, "\n");
  absl::string_view rest = text;
  std::string key, value;
  while (RE2::Consume(&rest, setting, &key, &value)) settings[key] = value;
  std::string path;
  EXPECT_TRUE(absl::CUnescape(settings["path"], &path));
  std::string graph = absl::ConsumePrefix(&rest, "model\n") ? kModel : "";
  const std::vector<std::string> parts = absl::StrSplit(rest, "meta:\n");
  tensorflow::MetaGraphDef meta;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      parts.size() > 1 ? parts[1] : "", &meta));
  *meta.mutable_graph_def() = GraphFromText(graph + parts[0]);
  GraphSummary summary = SummarizeMetaGraph(meta);
  summary.saved_model = settings["saved_model"];
  summary.saved_model_tags = settings["tags"];
  const std::string& show = settings["show"];
  const std::string report =
      show == "structure" ? StructureReport(meta.graph_def())
      : show.empty()
          ? TextReport(summary, path)
          : JsonOf(summary, path,
                   show == "json with structure" ? &meta.graph_def() : nullptr);
  std::vector<std::string> lines = absl::StrSplit(report, '\n');
  lines.pop_back();
  const auto unwanted = [&](const std::string& line) {
    return !RE2::PartialMatch(line, settings["only"]);
  };
  lines.erase(std::remove_if(lines.begin(), lines.end(), unwanted),
              lines.end());
  return absl::StrJoin(lines, "\n");
}

TEST(Summary, SaysWhatAGraphIs) {
  CheckGoldenCases("graph/summary/summary_cases.txt", ReportOf);
}

TEST(Summary, AThousandDefectsAreCutShort) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "a = Const\n";
  const auto problems = SummarizeGraph(GraphFromText(text)).problems;
  EXPECT_EQ(problems.size(), 21);
  EXPECT_THAT(problems.back(), HasSubstr("1979 more"));
}

}  // namespace
}  // namespace requant::summary_test
