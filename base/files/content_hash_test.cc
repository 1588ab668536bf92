#include "base/files/content_hash.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/files/file.h"

namespace requant::content_hash_test {
namespace {

std::string HashOf(const std::vector<std::string>& texts) {
  ContentHash hash;
  for (const std::string& text : texts) hash.Add(text);
  return hash.Finish();
}

std::string HashOfFile(const std::string& path) {
  ContentHash hash;
  const absl::Status added = hash.AddFile(path);
  EXPECT_TRUE(added.ok()) << added;
  return hash.Finish();
}

std::string Written(const std::string& name, const std::string& content) {
  const std::string path = testing::TempDir() + "/" + name;
  EXPECT_TRUE(WriteFileAtomically(path, content).ok());
  return path;
}

TEST(ContentHash, IsSha256) {
  EXPECT_EQ(ContentHash().Finish(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(ContentHash, KnowsWhereATextEnds) {
  EXPECT_EQ(HashOf({"ab", "c"}), HashOf({"ab", "c"}));
  EXPECT_NE(HashOf({"ab", "c"}), HashOf({"a", "bc"}));
}

TEST(ContentHash, OfAFileIsByItsContentAlone) {
  const std::string big(3'000'000, 'x');
  EXPECT_EQ(HashOfFile(Written("a", big)), HashOfFile(Written("b", big)));
  EXPECT_NE(HashOfFile(Written("a", big)), HashOfFile(Written("b", big + "x")));
}

TEST(ContentHash, OfAFolderIsByItsFilesAndTheirNames) {
  const std::string folder = testing::TempDir() + "/folder";
  std::filesystem::create_directories(folder + "/sub");
  Written("folder/one", "1");
  Written("folder/sub/two", "2");
  const std::string before = HashOfFile(folder);
  EXPECT_EQ(HashOfFile(folder), before);
  std::filesystem::rename(folder + "/one", folder + "/uno");
  EXPECT_NE(HashOfFile(folder), before);
}

TEST(ContentHash, OfAFolderHasWhatLinksLeadTo) {
  const std::string root = testing::TempDir() + "/linked";
  std::filesystem::create_directories(root + "/elsewhere");
  std::filesystem::create_directories(root + "/model");
  std::filesystem::create_directory_symlink("../elsewhere", root + "/model/v");
  Written("linked/elsewhere/data", "1");
  const std::string before = HashOfFile(root + "/model");
  Written("linked/elsewhere/data", "2");
  EXPECT_NE(HashOfFile(root + "/model"), before);
}

TEST(ContentHash, NamesAMissingFile) {
  const absl::Status status = ContentHash().AddFile("/no/such/file");
  EXPECT_FALSE(status.ok());
  EXPECT_NE(std::string(status.message()).find("/no/such/file"),
            std::string::npos);
}

}  // namespace
}  // namespace requant::content_hash_test
