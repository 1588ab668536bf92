#include "workflows/report/run_files.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/files/sha256.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "workflows/report/manifest.h"
#include "workflows/report/report_html.h"
#include "workflows/report/results.h"
#include "workflows/report/tensorboard_events.h"
#include "workflows/run/run_record.pb.h"

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
