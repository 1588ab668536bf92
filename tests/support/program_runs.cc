#include "tests/support/program_runs.h"

#include <sys/mount.h>

#include <filesystem>

#include "re2/re2.h"

namespace requant {

ProgramRun MustRun(const std::string& program, const Words& arguments) {
  ProgramRun run = RunProgram(program, arguments);
  EXPECT_THAT(run, Exits(0)) << program;
  return run;
}

ProgramRun RunIn(const TestFolder& folder, const std::string& program,
                 const Words& arguments, const Words& variables) {
  return RunProgram("/usr/bin/env",
                    Joined({"--chdir=" + folder.Path(""),
                            std::filesystem::absolute(program).string()},
                           arguments),
                    variables);
}

double NumberIn(const std::string& text, const std::string& pattern) {
  double number = -1;
  EXPECT_TRUE(RE2::PartialMatch(text, pattern, &number)) << pattern << "\n"
                                                         << text;
  return number;
}

std::string CsvDeclaration(int width, bool label,
                           const std::string& placeholder) {
  return absl::StrCat(
      "csv { files: 'data.csv' }\ninput { feature: 'x' placeholder: '",
      placeholder, "' dtype: 'float' shape: ", width, " }\n",
      label ? "label { feature: 'label' dtype: 'int64' }\n" : "",
      "prediction { tensor: 'predict' }\n");
}

SmallDisk::SmallDisk(const std::string& path, const std::string& size)
    : path_(path) {
  std::filesystem::create_directories(path);
  mounted_ = mount("tmpfs", path.c_str(), "tmpfs", 0, size.c_str()) == 0;
}

SmallDisk::~SmallDisk() {
  if (mounted_) umount2(path_.c_str(), MNT_DETACH);
}

}  // namespace requant
