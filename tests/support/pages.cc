#include "tests/support/pages.h"

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"

namespace requant {

namespace fs = std::filesystem;

std::vector<std::string> Blocks(const std::string& page,
                                std::string_view language) {
  std::vector<std::string> blocks;
  bool in_block = false;
  const std::string text = ReadFile(page).value();
  for (std::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::ConsumePrefix(&line, "```")) {
      in_block = line == language;
      if (in_block) blocks.emplace_back();
    } else if (in_block) {
      absl::StrAppend(&blocks.back(), line, "\n");
    }
  }
  return blocks;
}

void WriteBlocks(const std::string& page, std::string_view language,
                 const TestFolder& folder) {
  for (const std::string& block : Blocks(page, language)) {
    std::string_view name = std::string_view(block).substr(0, block.find('\n'));
    ASSERT_TRUE(absl::ConsumePrefix(&name, "# ")) << block;
    folder.Write(std::string(name), block);
  }
}

void MakeLikeRepository(const TestFolder& folder) {
  for (const auto& [name, path] : {std::pair("tests", "tests"),
                                   {"workflows", "workflows"},
                                   {"requant", "workflows/requant"},
                                   {"bazel-bin", "."}}) {
    fs::create_symlink(fs::absolute(path), folder.Path(name));
  }
}

}  // namespace requant
