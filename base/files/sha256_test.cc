#include "base/files/sha256.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace requant::sha256_test {
namespace {

namespace fs = std::filesystem;

// The standard's own example (FIPS 180-2, B.1).
constexpr char kDigestOfAbc[] =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

void Write(const fs::path& path, const std::string& content) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << content;
}

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

TEST(Sha256, IsTheStandards) { EXPECT_EQ(Sha256("abc"), kDigestOfAbc); }

TEST(Sha256, InBase64) {
  EXPECT_EQ(Sha256Base64("abc"),
            "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
}

TEST(DigestOfPath, OfAFileIsItsContents) {
  const std::string path = testing::TempDir() + "/abc";
  Write(path, "abc");
  const auto digest = DigestOfPath(path);
  ASSERT_TRUE(digest.ok()) << digest.status();
  EXPECT_EQ(digest->sha256, kDigestOfAbc);
  EXPECT_EQ(digest->bytes, 3);
}

TEST(DigestOfPath, OfAFolderIsThatOfSha256sumsLines) {
  const fs::path folder = testing::TempDir() + "/digest_folder";
  Write(folder / "b", "abc");
  Write(folder / "a/c", "");
  const auto digest = DigestOfPath(folder);
  ASSERT_TRUE(digest.ok()) << digest.status();
  EXPECT_EQ(digest->sha256,
            Sha256(Sha256("") + "  a/c\n" + kDigestOfAbc + "  b\n"));
  EXPECT_EQ(digest->bytes, 3);
}

TEST(DigestOfPath, FollowsLinksToFolders) {
  const fs::path root = testing::TempDir() + "/digest_linked";
  Write(root / "elsewhere/data", "abc");
  Write(root / "model/saved_model.pb", "");
  fs::create_directory_symlink("../elsewhere", root / "model/variables");
  const auto digest = DigestOfPath(root / "model");
  ASSERT_TRUE(digest.ok()) << digest.status();
  EXPECT_EQ(digest->sha256, Sha256(Sha256("") + "  saved_model.pb\n" +
                                   kDigestOfAbc + "  variables/data\n"));
}

TEST(DigestOfPath, RefusesLinksThatLeadAroundInACircle) {
  const fs::path root = testing::TempDir() + "/circle";
  Write(root / "inner/file", "");
  fs::create_directory_symlink("..", root / "inner/up");
  const auto digest = DigestOfPath(root);
  EXPECT_EQ(digest.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(digest.status().message().find("circle/inner/up is a link"),
            std::string::npos)
      << digest.status();
}

TEST(DigestOfPath, RefusesLinksThatMultiply) {
  const fs::path root = testing::TempDir() + "/many";
  for (int i = 0; i < 20; ++i) {
    const fs::path folder = root / std::to_string(i);
    const fs::path next = "../" + std::to_string(i + 1);
    fs::create_directories(folder);
    fs::create_directory_symlink(next, folder / "a");
    fs::create_directory_symlink(next, folder / "b");
  }
  fs::create_directories(root / "20");
  const auto digest = DigestOfPath(root / "0");
  EXPECT_EQ(digest.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(DigestOfPath, AMissingFileIsNamed) {
  const auto digest = DigestOfPath("no/such/file");
  EXPECT_EQ(digest.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(digest.status().message().find("no/such/file"), std::string::npos);
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
  const std::string a = testing::TempDir() + "/a",
                    b = testing::TempDir() + "/b";
  Write(a, std::string(3'000'000, 'x'));
  Write(b, std::string(3'000'000, 'x'));
  EXPECT_EQ(HashOfFile(a), HashOfFile(b));
  Write(b, std::string(3'000'001, 'x'));
  EXPECT_NE(HashOfFile(a), HashOfFile(b));
}

TEST(ContentHash, OfAFolderIsByItsFilesAndTheirNames) {
  const std::string folder = testing::TempDir() + "/folder";
  Write(folder + "/one", "1");
  Write(folder + "/sub/two", "2");
  const std::string before = HashOfFile(folder);
  EXPECT_EQ(HashOfFile(folder), before);
  fs::rename(folder + "/one", folder + "/uno");
  EXPECT_NE(HashOfFile(folder), before);
}

TEST(ContentHash, OfAFolderHasWhatLinksLeadTo) {
  const std::string root = testing::TempDir() + "/linked";
  Write(root + "/elsewhere/data", "1");
  fs::create_directories(root + "/model");
  fs::create_directory_symlink("../elsewhere", root + "/model/v");
  const std::string before = HashOfFile(root + "/model");
  Write(root + "/elsewhere/data", "2");
  EXPECT_NE(HashOfFile(root + "/model"), before);
}

TEST(ContentHash, NamesAMissingFile) {
  const absl::Status status = ContentHash().AddFile("/no/such/file");
  EXPECT_FALSE(status.ok());
  EXPECT_NE(std::string(status.message()).find("/no/such/file"),
            std::string::npos);
}

TEST(Seal, GivesBackWhatWasSealed) {
  for (const std::string content : {"", "a", "with\na line"}) {
    EXPECT_EQ(Unsealed(Sealed(content)), content);
  }
}

TEST(Seal, IsBrokenByAnyChangedBitAndAnyCut) {
  const std::string sealed = Sealed("content");
  for (size_t i = 0; i < sealed.size(); ++i) {
    EXPECT_FALSE(Unsealed(sealed.substr(0, i)).has_value()) << i;
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = sealed;
      changed[i] ^= 1 << bit;
      EXPECT_FALSE(Unsealed(changed).has_value()) << i << " " << bit;
    }
  }
}

}  // namespace
}  // namespace requant::sha256_test
