#include "base/files/sha256.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

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

}  // namespace
}  // namespace requant::sha256_test
