#include "checkpoint/files/file_system.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "base/testing/temporary_folder.h"
#include "base/threads/progress.h"
#include "checkpoint/testing/fault_file_system.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

using ::testing::ElementsAre;

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

void WriteFile(FileSystem& files, const std::string& path, const std::string& text) {
  absl::StatusOr<std::unique_ptr<WritableFile>> file = files.Create(path);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Append(Bytes(text)).ok());
  ASSERT_TRUE((*file)->Sync().ok());
  ASSERT_TRUE((*file)->Close().ok());
}

// Both implementations keep the same contract; otherwise the tests on the double prove nothing.
class EveryFileSystem : public testing::TestWithParam<const char*> {
 protected:
  FileSystem& files() {
    return GetParam() == std::string("posix") ? *PosixFileSystem()
                                              : static_cast<FileSystem&>(fault_);
  }
  std::string Path(const std::string& name) { return folder_.File(name); }
  void SetUp() override { ASSERT_TRUE(files().MakeFolders(folder_.path()).ok()); }

 private:
  TemporaryFolder folder_;
  FaultFileSystem fault_;
};

TEST_P(EveryFileSystem, GivesBackWhatWasAppended) {
  WriteFile(files(), Path("a"), "hello");
  absl::StatusOr<std::unique_ptr<ReadableFile>> file = files().Open(Path("a"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->size(), 5);
  std::string text(3, ' ');
  ASSERT_TRUE((*file)->Read(1, std::as_writable_bytes(std::span(text))).ok());
  EXPECT_EQ(text, "ell");
}

TEST_P(EveryFileSystem, RefusesToReadPastTheEnd) {
  WriteFile(files(), Path("a"), "hello");
  absl::StatusOr<std::unique_ptr<ReadableFile>> file = files().Open(Path("a"));
  std::string text(3, ' ');
  const auto target = std::as_writable_bytes(std::span(text));
  for (const int64_t offset : {int64_t{3}, int64_t{6}, int64_t{-1}, INT64_MAX}) {
    EXPECT_TRUE(absl::IsDataLoss((*file)->Read(offset, target))) << offset;
  }
}

TEST_P(EveryFileSystem, NeverOverwritesOnCreate) {
  WriteFile(files(), Path("a"), "first");
  EXPECT_TRUE(absl::IsAlreadyExists(files().Create(Path("a")).status()));
}

TEST_P(EveryFileSystem, NamesWhatIsMissing) {
  EXPECT_TRUE(absl::IsNotFound(files().Open(Path("none")).status()));
  EXPECT_TRUE(absl::StrContains(files().Open(Path("none")).status().message(), "none"));
  EXPECT_TRUE(absl::IsNotFound(files().Create(Path("none/a")).status()));
  EXPECT_TRUE(absl::IsNotFound(files().List(Path("none")).status()));
  EXPECT_TRUE(absl::IsNotFound(files().Rename(Path("none"), Path("b"))));
  EXPECT_TRUE(absl::IsNotFound(files().SyncFolder(Path("none"))));
  EXPECT_TRUE(files().RemoveAll(Path("none")).ok());
  EXPECT_FALSE(files().Exists(Path("none")));
}

TEST_P(EveryFileSystem, DoesNotOpenAFolderAsAFile) {
  ASSERT_TRUE(files().MakeFolders(Path("folder")).ok());
  EXPECT_TRUE(absl::IsDataLoss(files().Open(Path("folder")).status()));
}

TEST_P(EveryFileSystem, MakesRenamesAndRemovesFolders) {
  ASSERT_TRUE(files().MakeFolders(Path("x/y/z")).ok());
  ASSERT_TRUE(files().MakeFolders(Path("x/y/z")).ok());
  WriteFile(files(), Path("x/y/b"), "");
  WriteFile(files(), Path("x/y/a"), "");
  EXPECT_THAT(*files().List(Path("x/y")), ElementsAre("a", "b", "z"));
  ASSERT_TRUE(files().Rename(Path("x/y"), Path("w")).ok());
  EXPECT_TRUE(files().Exists(Path("w/a")));
  ASSERT_TRUE(files().SyncFolder(Path("w")).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(files().Rename(Path("x"), Path("w"))));
  ASSERT_TRUE(files().RemoveAll(Path("w")).ok());
  EXPECT_FALSE(files().Exists(Path("w")));
}

TEST_P(EveryFileSystem, AFileWithTwoNamesIsThereUntilBothAreGone) {
  WriteFile(files(), Path("a"), "hello");
  ASSERT_TRUE(files().Link(Path("a"), Path("b")).ok());
  EXPECT_EQ(files().Link(Path("a"), Path("b")).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(files().Link(Path("none"), Path("c")).code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(files().RemoveAll(Path("a")).ok());
  EXPECT_EQ((*files().Open(Path("b")))->size(), 5);
  ASSERT_TRUE(files().RemoveAll(Path("b")).ok());
  EXPECT_FALSE(files().Exists(Path("b")));
}

TEST_P(EveryFileSystem, TellsTheFreeBytes) {
  ASSERT_TRUE(files().FreeBytes(Path("")).ok());
  EXPECT_GT(*files().FreeBytes(Path("")), 0);
}

INSTANTIATE_TEST_SUITE_P(, EveryFileSystem, testing::Values("posix", "fault"),
                         [](const auto& info) { return std::string(info.param); });

TEST(PosixFileSystem, ALargeFileIsSeenToGetOn) {
  TemporaryFolder folder;
  const std::string path = folder.File("large-file");
  ProgressCounter progress;
  const ProgressScope scope(&progress);
  std::vector<std::byte> bytes(2 * kProgressPieceBytes + 1, std::byte{7});
  auto file = PosixFileSystem()->Create(path);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Append(bytes).ok());
  ASSERT_TRUE((*file)->Close().ok());
  const uint64_t written = progress.count();
  EXPECT_GE(written, 3u);
  std::vector<std::byte> read(bytes.size());
  auto opened = PosixFileSystem()->Open(path);
  ASSERT_TRUE(opened.ok()) << opened.status();
  ASSERT_TRUE((*opened)->Read(0, read).ok());
  EXPECT_GE(progress.count(), written + 3);
  EXPECT_EQ(read, bytes);
}

TEST(PosixFileSystem, LetsOnlyTheOwnerIn) {
  TemporaryFolder folder;
  const std::string inner = folder.File("a/b");
  ASSERT_TRUE(PosixFileSystem()->MakeFolders(inner).ok());
  WriteFile(*PosixFileSystem(), inner + "/file", "x");
  struct stat information;
  ASSERT_EQ(stat(inner.c_str(), &information), 0);
  EXPECT_EQ(information.st_mode & 0777, 0700u);
  ASSERT_EQ(stat((inner + "/file").c_str(), &information), 0);
  EXPECT_EQ(information.st_mode & 0777, 0600u);
}

TEST(PosixFileSystem, FollowsNoLinkAndWaitsForNoPipe) {
  TemporaryFolder folder;
  std::filesystem::create_symlink(folder.Write("secret", "x"), folder.File("link"));
  ASSERT_EQ(mkfifo(folder.File("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsDataLoss(PosixFileSystem()->Open(folder.File("link")).status()));
  EXPECT_TRUE(absl::IsDataLoss(PosixFileSystem()->Open(folder.File("pipe")).status()));
  EXPECT_FALSE(PosixFileSystem()->Create(folder.File("link")).ok());
}

// A file size limit gives a short write and then an error, as a full disk does.
TEST(PosixFileSystem, PoisonsAFileAfterAFailedWrite) {
  TemporaryFolder folder;
  absl::StatusOr<std::unique_ptr<WritableFile>> file =
      PosixFileSystem()->Create(folder.File("file"));
  ASSERT_TRUE(file.ok());
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 10;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status failed = (*file)->Append(Bytes(std::string(100, 'x')));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_FALSE(failed.ok());
  EXPECT_EQ((*file)->Append(Bytes("y")), failed);
  EXPECT_EQ((*file)->Sync(), failed);
  EXPECT_EQ((*file)->Close(), failed);
  EXPECT_EQ(std::filesystem::file_size(folder.File("file")), 10u);
}

TEST(FaultFileSystem, FailsTheNthCallOnce) {
  FaultFileSystem files;
  files.Inject({.call = 2, .code = absl::StatusCode::kDataLoss});
  EXPECT_TRUE(files.MakeFolders("/a").ok());
  EXPECT_TRUE(absl::IsDataLoss(files.MakeFolders("/b")));
  EXPECT_FALSE(files.Exists("/b"));
  EXPECT_TRUE(files.MakeFolders("/b").ok());
  EXPECT_EQ(files.calls(), 3);
}

TEST(FaultFileSystem, ReadsFailAsTheyDoOnARealDisk) {
  FaultFileSystem files;
  ASSERT_TRUE(files.MakeFolders("/a").ok());
  files.Inject({.code = absl::StatusCode::kDataLoss, .from_then_on = true, .as_posix = true});
  EXPECT_TRUE(absl::IsUnavailable(files.List("/a").status()));
  EXPECT_TRUE(absl::IsUnavailable(files.Open("/a/b").status()));
  EXPECT_TRUE(absl::IsDataLoss(files.MakeFolders("/b")));
}

TEST(FaultFileSystem, CanFailAfterTheWorkWasDone) {
  FaultFileSystem files;
  files.Inject({.after_effect = true});
  EXPECT_TRUE(absl::IsUnavailable(files.MakeFolders("/a")));
  EXPECT_TRUE(files.Exists("/a"));
}

TEST(FaultFileSystem, FillsUpAndPoisonsTheFile) {
  FaultFileSystem files;
  files.SetCapacity(10);
  std::unique_ptr<WritableFile> file = *files.Create("/file");
  EXPECT_TRUE(file->Append(Bytes("12345678")).ok());
  EXPECT_EQ(*files.FreeBytes("/"), 2);
  EXPECT_TRUE(absl::IsResourceExhausted(file->Append(Bytes("abcdef"))));
  EXPECT_TRUE(absl::IsResourceExhausted(file->Sync()));
  EXPECT_EQ(files.Contents("/file"), "12345678ab");
}

TEST(FaultFileSystem, ForgetsWhatWasNotSyncedWhenThePowerFails) {
  const auto prepared = [](FaultFileSystem& files) {
    std::unique_ptr<WritableFile> named = *files.Create("/entry-only");
    EXPECT_TRUE(named->Append(Bytes("lost")).ok());
    EXPECT_TRUE(files.SyncFolder("/").ok());
    WriteFile(files, "/bytes-only", "kept");
    EXPECT_TRUE(files.MakeFolders("/later").ok());
    return named;
  };
  {
    FaultFileSystem files;
    const auto open = prepared(files);
    files.CutPower(FaultFileSystem::Survivors::kSynced);
    EXPECT_THAT(*files.List("/"), ElementsAre("entry-only"));
    EXPECT_EQ(files.Contents("/entry-only"), "");
    EXPECT_TRUE(absl::IsUnavailable(open->Append(Bytes("x"))));
  }
  {
    FaultFileSystem files;
    prepared(files);
    files.CutPower(FaultFileSystem::Survivors::kEntries);
    EXPECT_THAT(*files.List("/"), ElementsAre("bytes-only", "entry-only", "later"));
    EXPECT_EQ(files.Contents("/entry-only"), "");
    EXPECT_EQ(files.Contents("/bytes-only"), "kept");
  }
  {
    FaultFileSystem files;
    prepared(files);
    files.CutPower(FaultFileSystem::Survivors::kContents);
    EXPECT_THAT(*files.List("/"), ElementsAre("entry-only"));
    EXPECT_EQ(files.Contents("/entry-only"), "lost");
  }
}

}  // namespace
}  // namespace stagecoach
