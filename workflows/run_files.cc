#include "workflows/run_files.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "workflows/manifest.h"
#include "workflows/report_html.h"
#include "workflows/results.h"
#include "workflows/run_record.pb.h"
#include "workflows/tensorboard_events.h"

namespace requant {

absl::Status WriteRunFiles(const RunRecord& record, const std::string& folder,
                           const std::string& commands,
                           std::vector<std::string> made) {
  const std::vector<std::pair<std::string, std::string>> files = {
      {kCommandsFile, commands},
      {"report.html", ReportHtml(record)},
      {"results.json", IndentedJson(ResultsJson(record))},
      {"results.csv", ResultsCsv(record)},
      {EventFileName(record), EventFile(record)},
  };
  std::vector<FileRecord> written;
  for (const auto& [name, content] : files) {
    REQUANT_RETURN_IF_ERROR(
        WriteFileAtomically(absl::StrCat(folder, "/", name), content));
    FileRecord& file = written.emplace_back();
    file.set_role("report");
    file.set_path(name);
    file.set_sha256(Sha256(content));
    file.set_bytes(content.size());
    made.push_back(name);
  }
  made.push_back(kManifestFile);
  return WriteFileAtomically(absl::StrCat(folder, "/", kManifestFile),
                             ManifestJson(record, written, made));
}

}  // namespace requant
