// Plants a defect in place in what a stage of a workflow made, and prints what
// it did. `requant run --tamper=STAGE="plant_defect KIND"` calls this program
// with the stage's files as further arguments. tests/defects lists the kinds.

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/defects/defect.h"

int main(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "";
  for (const requant::Defect& defect : requant::AllDefects()) {
    if (defect.name != kind) continue;
    const absl::StatusOr<std::string> done =
        requant::Plant(defect, std::vector<std::string>(argv + 2, argv + argc));
    if (done.ok()) {
      std::printf("%s: %s\n", kind.c_str(), done->c_str());
      return 0;
    }
    std::fprintf(stderr, "%s\n", done.status().ToString().c_str());
    return 1;
  }
  std::fprintf(stderr, "there is no defect \"%s\"\n", kind.c_str());
  return 2;
}
