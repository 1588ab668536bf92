#include "base/files/sha256.h"

#include <filesystem>

#include "base/testing/testing.h"

namespace requant::sha256_test {
namespace {

namespace fs = std::filesystem;

// The standard's own example (FIPS 180-2, B.1).
constexpr char kDigestOfAbc[] =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

std::string HashOf(const std::vector<std::string>& texts) {
  ContentHash hash;
  for (const std::string& text : texts) hash.Add(text);
  return hash.Finish();
}

std::string HashOfFile(const std::string& path) {
  ContentHash hash;
  EXPECT_OK(hash.AddFile(path));
  return hash.Finish();
}

TEST(Sha256, IsTheStandards) {
  EXPECT_EQ(Sha256("abc"), kDigestOfAbc);
  EXPECT_EQ(Sha256Base64("abc"),
            "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
  EXPECT_EQ(ContentHash().Finish(), Sha256(""));
}

class Digest : public testing::Test {
 protected:
  // Expects this digest for a path in the folder, and a size of three bytes.
  void ExpectDigest(const std::string& name, const std::string& sha256) {
    ASSERT_OK_AND_ASSIGN(const auto digest, DigestOfPath(folder_.Path(name)));
    EXPECT_EQ(digest.sha256, sha256);
    EXPECT_EQ(digest.bytes, 3);
  }

  ScratchFolder folder_;
  const fs::path root_ = folder_.path();
};

TEST_F(Digest, OfAFileIsItsContents) {
  folder_.Write("abc", "abc");
  ExpectDigest("abc", kDigestOfAbc);
}

TEST_F(Digest, OfAFolderIsThatOfSha256sumsLines) {
  folder_.Write("model/b", "abc");
  folder_.Write("model/a/c", "");
  ExpectDigest("model",
               Sha256(Sha256("") + "  a/c\n" + kDigestOfAbc + "  b\n"));
}

TEST_F(Digest, FollowsLinksToFolders) {
  folder_.Write("elsewhere/data", "abc");
  folder_.Write("model/saved_model.pb", "");
  fs::create_directory_symlink("../elsewhere", root_ / "model/variables");
  ExpectDigest("model", Sha256(Sha256("") + "  saved_model.pb\n" +
                               kDigestOfAbc + "  variables/data\n"));
  const std::string before = HashOfFile(root_ / "model");
  folder_.Write("elsewhere/data", "2");
  EXPECT_NE(HashOfFile(root_ / "model"), before);
}

TEST_F(Digest, RefusesLinksThatMultiply) {
  for (int i = 0; i < 20; ++i) {
    const fs::path folder = root_ / std::to_string(i);
    const fs::path next = "../" + std::to_string(i + 1);
    fs::create_directories(folder);
    fs::create_directory_symlink(next, folder / "a");
    fs::create_directory_symlink(next, folder / "b");
  }
  fs::create_directories(root_ / "20");
  EXPECT_TRUE(absl::IsInvalidArgument(DigestOfPath(root_ / "0").status()));
}

TEST_F(Digest, OfAMissingFileNamesIt) {
  EXPECT_TRUE(absl::IsNotFound(DigestOfPath("no/such/file").status()));
  EXPECT_THAT(DigestOfPath("no/such/file"),
              FailsWith(HasSubstr("no/such/file")));
  EXPECT_THAT(ContentHash().AddFile("no/such/file"),
              FailsWith(HasSubstr("no/such/file")));
}

TEST_F(Digest, OfTextsKnowsWhereTheyEnd) {
  EXPECT_EQ(HashOf({"ab", "c"}), HashOf({"ab", "c"}));
  EXPECT_NE(HashOf({"ab", "c"}), HashOf({"a", "bc"}));
}

TEST_F(Digest, ByWhichWorkIsKnownIsOfContentsAndNamesBelow) {
  const std::string a = folder_.Write("a", std::string(3'000'000, 'x'));
  const std::string b = folder_.Write("b", std::string(3'000'000, 'x'));
  EXPECT_EQ(HashOfFile(a), HashOfFile(b));
  folder_.Write("b", std::string(3'000'001, 'x'));
  EXPECT_NE(HashOfFile(a), HashOfFile(b));
  folder_.Write("folder/one", "1");
  folder_.Write("folder/sub/two", "2");
  const std::string before = HashOfFile(root_ / "folder");
  EXPECT_EQ(HashOfFile(root_ / "folder"), before);
  fs::rename(root_ / "folder/one", root_ / "folder/uno");
  EXPECT_NE(HashOfFile(root_ / "folder"), before);
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
