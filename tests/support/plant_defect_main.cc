// Plants a defect in what a stage of a workflow made, in place, and says what
// it did: the program behind `requant run --tamper=STAGE="plant_defect KIND"`,
// which adds the stage's files. The lists of tests/defects have the kinds.

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
