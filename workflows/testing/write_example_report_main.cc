#include "base/file.h"
#include "workflows/report_html.h"
#include "workflows/testing/example_runs.h"
int main(int, char** argv) {
  std::string f = argv[1];
  using namespace requant;
  return !(WriteFileAtomically(f + "/passed.html", ReportHtml(PassedRun())).ok() &&
  WriteFileAtomically(f + "/refused.html", ReportHtml(RefusedRun())).ok() &&
  WriteFileAtomically(f + "/interrupted.html", ReportHtml(InterruptedRun())).ok() &&
  WriteFileAtomically(f + "/one.html", ReportHtml(OneStageRun())).ok());
}
