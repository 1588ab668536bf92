#include "workflows/run/stage_store.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>

#include "base/files/file.h"
#include "base/files/sha256.h"
#include "graph/testing/program.h"

namespace requant::stage_store_test {
namespace {

namespace fs = std::filesystem;

class StageStoreTest : public testing::Test {
 protected:
  std::unique_ptr<StageStore> Open() {
    auto store = StageStore::OpenForRun(folder_, "requant run test");
    EXPECT_OK(store);
    return *std::move(store);
  }

  // Overwrites a file in place, as editors and shells do.
  static void Overwrite(const std::string& path, const std::string& content) {
    std::ofstream(path) << content;
  }

  // Publishes a result with one file, "out".
  static CachedTask Publish(StageStore* store, const std::string& key,
                            const std::string& content) {
    const auto folder = store->NewFolder();
    EXPECT_OK(folder);
    Overwrite(absl::StrCat(*folder, "/out"), content);
    CachedTask task;
    task.set_task("a/verify");
    FileRecord& output = *task.mutable_work()->add_output();
    output.set_path("out");
    output.set_bytes(static_cast<int64_t>(content.size()));
    output.set_sha256(Sha256(content));
    EXPECT_OK(store->Publish(*folder, key, task));
    return task;
  }
  // Finds a result in a run that then ends.
  void UseInARun(const std::string& key, bool finished) {
    const auto store = Open();
    EXPECT_OK(store->Find(key));
    store->RunEnded(finished);
  }

  const TestFolder home_;
  const std::string folder_ = home_.Path("store");
};

TEST_F(StageStoreTest, FindsWhatWasPublished) {
  Publish(Open().get(), "k", "content");
  const auto store = Open();
  ASSERT_OK_AND_ASSIGN(const CachedTask found, store->Find("k"));
  EXPECT_EQ(found.task(), "a/verify");
  EXPECT_EQ(*ReadFile(store->PathOf("k", "out")), "content");
  EXPECT_OK(store->Check("k", found.work().output(0)));
  EXPECT_TRUE(absl::IsNotFound(store->Find("other").status()));
}

TEST_F(StageStoreTest, KeepsTheNewerOfTwoResults) {
  const auto store = Open();
  Publish(store.get(), "k", "first");
  Publish(store.get(), "k", "second");
  EXPECT_EQ(*ReadFile(store->PathOf("k", "out")), "second");
  EXPECT_TRUE(fs::is_empty(absl::StrCat(folder_, "/tmp")));
}

TEST_F(StageStoreTest, NoticesAFileThatChangedOrIsGone) {
  const auto store = Open();
  const CachedTask task = Publish(store.get(), "k", "content");
  Overwrite(store->PathOf("k", "out"), "CONTENT");
  ASSERT_OK(store->Find("k"));
  EXPECT_EQ(store->Check("k", task.work().output(0)).message(),
            store->PathOf("k", "out") + " was changed since it was made");
  Overwrite(store->PathOf("k", "out"), "cont");
  EXPECT_TRUE(absl::IsDataLoss(store->Find("k").status()));
  fs::remove(store->PathOf("k", "out"));
  EXPECT_TRUE(absl::IsDataLoss(store->Find("k").status()));
}

TEST_F(StageStoreTest, DoesNotFindAResultWithAnyBitChanged) {
  const auto store = Open();
  Publish(store.get(), "k", "content");
  const std::string path = store->PathOf("k", "result.pb");
  const std::string whole = *ReadFile(path);
  for (size_t i = 0; i < whole.size() * 8; i += 3) {
    std::string changed = whole;
    changed[i / 8] ^= 1 << (i % 8);
    Overwrite(path, changed);
    EXPECT_EQ(store->Find("k").status().message(),
              path + " was changed since it was made")
        << "bit " << i;
  }
}

TEST_F(StageStoreTest, KeepsFoldersAsItKeepsFiles) {
  const auto store = Open();
  const auto folder = store->NewFolder();
  fs::create_directories(*folder + "/model/variables");
  Overwrite(*folder + "/model/saved_model.pb", "graph");
  Overwrite(*folder + "/model/variables/data", "values");
  ASSERT_OK_AND_ASSIGN(const PathDigest digest,
                       DigestOfPath(*folder + "/model"));
  CachedTask task;
  FileRecord& output = *task.mutable_work()->add_output();
  output.set_path("model");
  output.set_bytes(digest.bytes);
  output.set_sha256(digest.sha256);
  ASSERT_TRUE(store->Publish(*folder, "k", task).ok());
  EXPECT_OK(store->Find("k"));
  EXPECT_OK(store->Check("k", output));
  Overwrite(store->PathOf("k", "model/variables/data"), "VALUES");
  EXPECT_OK(store->Find("k"));
  EXPECT_FALSE(store->Check("k", output).ok());
  fs::remove(store->PathOf("k", "model/variables/data"));
  EXPECT_FALSE(store->Find("k").ok());
}

TEST_F(StageStoreTest, KnowsWhatATaskMadeLast) {
  const auto store = Open();
  Publish(store.get(), "k", "content");
  ASSERT_TRUE(store->LastOf("a/verify").has_value());
  EXPECT_FALSE(store->LastOf("a").has_value());
}

TEST_F(StageStoreTest, RemovesWhatKilledRunsLeft) {
  {
    const auto store = Open();
    Overwrite(absl::StrCat(*store->NewFolder(), "/half"), "x");
  }
  Open();
  EXPECT_TRUE(fs::is_empty(absl::StrCat(folder_, "/tmp")));
}

// --work_dir may be a folder that has a tmp/ of its own.
TEST_F(StageStoreTest, KeepsWhatOthersHaveInTmp) {
  fs::create_directories(absl::StrCat(folder_, "/tmp"));
  Overwrite(absl::StrCat(folder_, "/tmp/note"), "mine");
  Open();
  EXPECT_EQ(*ReadFile(absl::StrCat(folder_, "/tmp/note")), "mine");
}

TEST_F(StageStoreTest, IsForOneRunAtATime) {
  const auto store = Open();
  EXPECT_THAT(
      StageStore::OpenForRun(folder_, "another"),
      FailsWith(AllOf(
          HasSubstr(absl::StrCat("is in use by process ", getpid(), " on ")),
          HasSubstr(", running \"requant run test\" since "),
          HasSubstr("--work_dir"))));
}

TEST_F(StageStoreTest, SaysThatItsFolderCannotBeMade) {
  EXPECT_THAT(StageStore::OpenForRun(home_.Write("file", "") + "/work", "test"),
              FailsWith(HasSubstr("/file/work")));
}

TEST_F(StageStoreTest, LooksWithoutWriting) {
  const auto store = StageStore::OpenToLook(folder_);
  EXPECT_FALSE(store->Find("k").ok());
  EXPECT_TRUE(store->Results().empty());
  EXPECT_FALSE(fs::exists(folder_));
}

// A store with results "a", "b" and "c" of 1000 bytes or more, which a run that
// finished used in this order some days ago.
class PrunedStoreTest : public StageStoreTest {
 protected:
  PrunedStoreTest() {
    const auto store = Open();
    for (const char* key : {"a", "b", "c"}) {
      Publish(store.get(), key, std::string(1000, 'x'));
      SetLastUsed(key, days_--);
    }
    store->RunEnded(true);
  }

  void SetLastUsed(const std::string& key, int days_ago) {
    fs::last_write_time(
        absl::StrCat(folder_, "/cache/", key),
        fs::file_time_type::clock::now() - std::chrono::hours(24 * days_ago));
  }
  static std::string KeysOf(const StageStore& store) {
    std::string keys;
    for (const StoredResult& result : store.Results()) keys += result.key;
    return keys;
  }
  std::string Prune(const PruneLimits& limits) {
    const auto store = Open();
    EXPECT_TRUE(PruneStore(limits, store.get()).ok());
    return KeysOf(*store);
  }
  // Leaves what a killed run that used `key` would leave.
  void StopARun(const std::string& key) {
    EXPECT_TRUE(
        (*StageStore::OpenForRun(folder_, "requant run"))->Find(key).ok());
  }

  int days_ = 40;
};

TEST_F(PrunedStoreTest, LosesTheLeastRecentlyUsedUntilTheRestFits) {
  EXPECT_EQ(Prune({}), "abc");
  EXPECT_EQ(Prune({absl::InfinitePast(), 2900}), "bc");
  SetLastUsed("b", 1);
  EXPECT_EQ(Prune({absl::InfinitePast(), 1900}), "b");
  EXPECT_TRUE(fs::is_empty(absl::StrCat(folder_, "/tmp")));
}

TEST_F(PrunedStoreTest, LosesWhatWasNotUsedForLong) {
  EXPECT_EQ(Prune({absl::Now() - absl::Hours(24 * 39 + 12), INT64_MAX}), "bc");
}

TEST_F(PrunedStoreTest, KeepsWhatTheOpenRunUsed) {
  const auto store = Open();
  EXPECT_OK(store->Find("a"));
  store->RunEnded(true);
  EXPECT_EQ(KeysOf(*store), "bca");
  const auto pruned = PruneStore({absl::InfinitePast(), 0}, store.get());
  ASSERT_TRUE(pruned.ok());
  EXPECT_EQ(pruned->results, 2);
  EXPECT_EQ(pruned->needed_bytes, pruned->kept_bytes);
  EXPECT_EQ(KeysOf(*store), "a");
}

TEST_F(PrunedStoreTest, KeepsWhatIsNotOurs) {
  fs::create_directories(absl::StrCat(folder_, "/cache/photos"));
  EXPECT_EQ(Prune({absl::InfiniteFuture(), 0}), "");
  EXPECT_TRUE(fs::exists(absl::StrCat(folder_, "/cache/photos")));
}

TEST_F(PrunedStoreTest, KeepsWhatTheLastRunThatFailedUsed) {
  for (const char* key : {"a", "b"}) UseInARun(key, /*finished=*/false);
  EXPECT_EQ(Prune({absl::InfiniteFuture(), 0}), "b");
}

TEST_F(PrunedStoreTest, KeepsWhatAStoppedRunNeedsForTwoWeeks) {
  StopARun("a");
  EXPECT_EQ(Prune({absl::InfiniteFuture(), 0}), "a");
  EXPECT_EQ(Open()->Results()[0].needed_by, "requant run");
  for (const auto& entry :
       fs::directory_iterator(absl::StrCat(folder_, "/stopped"))) {
    fs::last_write_time(
        entry, fs::file_time_type::clock::now() - std::chrono::hours(24 * 15));
  }
  EXPECT_EQ(Prune({absl::InfiniteFuture(), 0}), "");
}

TEST_F(PrunedStoreTest, NeedsNothingForAStoppedRunThatAnotherTookToItsEnd) {
  StopARun("a");
  UseInARun("b", /*finished=*/true);
  EXPECT_EQ(Prune({absl::InfinitePast(), 0}), "a");
  UseInARun("a", /*finished=*/true);
  EXPECT_EQ(Prune({absl::InfinitePast(), 0}), "");
}

// A file that has not changed recently.
constexpr char kOldFile[] = "/bin/sh";

// Returns the digest of kOldFile after `edit` changed what is known about it.
// An impossible digest shows that the file is not read again.
std::string HashWithKnown(const std::string& folder,
                          void (*edit)(FileDigest* known)) {
  const auto open = [&] {
    return *StageStore::OpenForRun(folder, "requant run test");
  };
  EXPECT_TRUE(open()->Hash(kOldFile).ok());
  const std::string path = absl::StrCat(folder, "/digests.pb");
  FileDigests digests;
  EXPECT_TRUE(digests.ParseFromString(*Unsealed(*ReadFile(path))));
  EXPECT_EQ(digests.file_size(), 1);
  digests.mutable_file(0)->set_sha256("known");
  edit(digests.mutable_file(0));
  EXPECT_TRUE(
      WriteFileAtomically(path, Sealed(digests.SerializeAsString())).ok());
  return open()->Hash(kOldFile)->sha256;
}

TEST_F(StageStoreTest, DoesNotReadAFileAgainThatDidNotChange) {
  EXPECT_EQ(HashWithKnown(folder_, [](FileDigest*) {}), "known");
}

TEST_F(StageStoreTest, ReadsAFileAgainWhoseTimesPlaceOrSizeChanged) {
  using Edit = void (*)(FileDigest*);
  const Edit edits[] = {
      [](FileDigest* known) { known->set_bytes(known->bytes() + 1); },
      [](FileDigest* known) { known->set_modified_ns(1); },
      [](FileDigest* known) { known->set_changed_ns(1); },
      [](FileDigest* known) { known->set_inode(known->inode() + 1); },
      [](FileDigest* known) { known->set_device(known->device() + 1); },
  };
  const std::string digest = DigestOfPath(kOldFile)->sha256;
  for (const Edit edit : edits) {
    fs::remove_all(folder_);
    EXPECT_EQ(HashWithKnown(folder_, edit), digest) << &edit - edits;
  }
}

// This holds even if its time was set back.
TEST_F(StageStoreTest, ReadsAFileAgainThatWasJustWritten) {
  const std::string path = home_.Path("young");
  Overwrite(path, "abc");
  const auto time = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(path, time);
  const std::string before = Open()->Hash(path)->sha256;
  Overwrite(path, "xyz");
  fs::last_write_time(path, time);
  EXPECT_NE(Open()->Hash(path)->sha256, before);
}

TEST_F(StageStoreTest, HashesAFolderByItsFiles) {
  const std::string path = home_.Path("hashed");
  fs::create_directories(path);
  home_.Write("hashed/a", "abc");
  ASSERT_OK_AND_ASSIGN(const PathDigest hashed, Open()->Hash(path));
  EXPECT_EQ(hashed.bytes, 3);
  EXPECT_EQ(hashed.sha256, DigestOfPath(path)->sha256);
}

KeyPart Part(KeyPart::Kind kind, const std::string& name,
             const std::string& value) {
  KeyPart part;
  part.set_kind(kind);
  part.set_name(name);
  part.set_value(value);
  return part;
}

TEST(KeyOf, DependsOnEveryPartOfAPart) {
  const auto key = [](KeyPart::Kind kind, const char* name, const char* value) {
    return KeyOf({Part(kind, name, value)});
  };
  const std::string one = key(KeyPart::INPUT, "graph", "1");
  EXPECT_EQ(one, key(KeyPart::INPUT, "graph", "1"));
  EXPECT_NE(one, key(KeyPart::PROGRAM, "graph", "1"));
  EXPECT_NE(one, key(KeyPart::INPUT, "data", "1"));
  EXPECT_NE(one, key(KeyPart::INPUT, "graph", "2"));
}

TEST(WhatChanged, NamesTheFirstDifference) {
  CachedTask before;
  *before.add_part() = Part(KeyPart::PROGRAM, "transform_graph", "1");
  *before.add_part() = Part(KeyPart::PARAMETER, "--rows", "10");
  *before.add_part() = Part(KeyPart::INPUT, "data", "1");
  const std::vector<KeyPart> same(before.part().begin(), before.part().end());
  const auto with = [&](int i, const std::string& value) {
    std::vector<KeyPart> parts = same;
    parts[i].set_value(value);
    return WhatChanged(before, parts);
  };
  EXPECT_EQ(with(0, "2"), "the program transform_graph changed");
  EXPECT_EQ(with(1, "20"), "the parameter --rows changed from 10 to 20");
  EXPECT_EQ(with(1, std::string(100, 'x')), "the parameter --rows changed");
  EXPECT_EQ(with(2, "2"), "its input \"data\" changed");
  EXPECT_EQ(WhatChanged(before, {same[0], same[2]}),
            "the parameter --rows is gone");
  EXPECT_EQ(WhatChanged(before, same), "its result is gone");
}

}  // namespace
}  // namespace requant::stage_store_test
