#include "stage/files/data_roots.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/testing/status_is.h"
#include "base/testing/temporary_folder.h"
#include "base/threads/progress.h"

namespace stagecoach {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// root/ is what jobs may read, secret.txt and other/ lie beside it. By both calls of the kernel.
class DataRootsTest : public ::testing::TestWithParam<OpenCall> {
 protected:
  DataRootsTest() {
    Write("root/a.txt", "a");
    Write("root/deep/b.txt", "b");
    Write("secret.txt", "secret");
    Write("other/c.txt", "c");
  }
  void SetUp() override {
    if (GetParam() == OpenCall::kBest && !HasOpenat2()) GTEST_SKIP() << "no openat2 here";
  }

  std::string In(const std::string& name) const { return folder_.File(name); }
  void Write(const std::string& name, const std::string& text) { folder_.Write(name, text); }
  void Link(const std::string& target, const std::string& name) {
    fs::create_symlink(target, In(name));
  }
  DataRoots Roots(DataRoots::Options options = {}) const {
    if (options.roots.empty()) options.roots = {In("root")};
    options.call = GetParam();
    return DataRoots(std::move(options));
  }
  DataRoots Following() const { return Roots({.follow_links = true}); }

  static std::string TextOf(const absl::StatusOr<DataRoots::Opened>& opened) {
    if (!opened.ok()) return opened.status().ToString();
    std::array<char, 64> text{};
    const ssize_t got = read(opened->descriptor.get(), text.data(), text.size());
    return got < 0 ? "unreadable" : std::string(text.data(), static_cast<size_t>(got));
  }
  // A refusal of the file, and of it as a folder and through a folder; the first.
  static absl::Status Refusal(const DataRoots& roots, const std::string& path) {
    EXPECT_FALSE(roots.ListFolder(path).ok()) << path;
    const auto opened = roots.OpenFile(path);
    EXPECT_FALSE(opened.ok()) << path << " gave " << TextOf(opened);
    return opened.status();
  }

  TemporaryFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Calls, DataRootsTest, ::testing::Values(OpenCall::kBest, OpenCall::kPlain),
                         [](const auto& info) {
                           return info.param == OpenCall::kBest ? "Openat2" : "Openat";
                         });

TEST_P(DataRootsTest, OpensWhatIsBeneathARoot) {
  const DataRoots roots = Roots({.roots = {In("root"), In("other")}});
  for (const std::string& path : {In("root/a.txt"), In("root//./a.txt"), std::string("a.txt")}) {
    EXPECT_EQ(TextOf(roots.OpenFile(path)), "a") << path;
  }
  EXPECT_EQ(TextOf(roots.OpenFile(In("root/deep/b.txt"))), "b");
  EXPECT_EQ(TextOf(roots.OpenFile(In("other/c.txt"))), "c");
  EXPECT_EQ(TextOf(roots.OpenFile("c.txt")), "c") << "of the second root";
  const auto folder = roots.ListFolder(In("root/"));
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(folder->real, In("root"));
  ASSERT_EQ(folder->entries.size(), 2u);
  EXPECT_EQ(folder->entries[0].name, "a.txt");
  EXPECT_EQ(folder->entries[0].bytes, 1);
  EXPECT_EQ(folder->entries[1].kind, DataRoots::Entry::Kind::kFolder);
}

// Symptom: a folder of a million pictures on a cold share was never loaded, as its list showed no
// progress for minutes.
TEST_P(DataRootsTest, AListGetsOnWithEveryName) {
  for (int i = 0; i < 10; ++i) Write(absl::StrCat("root/many/", i), "");
  ProgressCounter progress;
  const ProgressScope scope(&progress);
  const auto folder = Roots().ListFolder(In("root/many"));
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_GE(progress.count(), 10u);
}

TEST_P(DataRootsTest, SaysTheSameOfWhatIsNotBeneathWhetherItIsThereOrNot) {
  fs::create_directories(In("rootless"));
  Write("rootless/a.txt", "a");
  for (const DataRoots& roots : {Roots(), Following()}) {
    const absl::Status absent = Refusal(roots, In("nothing.txt"));
    EXPECT_THAT(absent, StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("--data-root")));
    for (const std::string& path :
         {In("secret.txt"), In("other"), In("other/nothing"), In("secret.txt/below"),
          folder_.path(), In("rootless/a.txt"), std::string("/etc/shadow"), std::string("/"),
          std::string("/proc/self/environ"), std::string("/proc/self/fd/0"),
          "/proc/self/root" + In("root/a.txt"), std::string("/dev/zero")}) {
      EXPECT_EQ(Refusal(roots, path), absent) << path;
    }
  }
}

TEST_P(DataRootsTest, RefusesTwoDotsWhereverTheyLead) {
  for (const std::string& path :
       {In("root/../secret.txt"), In("root/deep/../a.txt"), std::string("../secret.txt"),
        In("root/nothing/../../secret.txt"), In("root/.."), std::string("..")}) {
    EXPECT_THAT(Refusal(Following(), path),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has \"..\"")));
  }
}

TEST_P(DataRootsTest, RefusesPathsThatAreNone) {
  const DataRoots roots = Roots();
  // What a C string would take for the root's file.
  for (const std::string& path :
       {std::string(), In("root/a.txt") + std::string(1, '\0') + ".txt"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Refusal(roots, path)));
  }
  const absl::Status too_long = Refusal(roots, In("root/") + std::string(256, 'x'));
  EXPECT_TRUE(absl::IsInvalidArgument(too_long))
      << "it would be tried again for ever: " << too_long;
  std::string deep = In("root");
  for (int i = 0; i < 3000; ++i) deep += "/xx";
  EXPECT_TRUE(absl::IsNotFound(Refusal(roots, deep)));
  EXPECT_TRUE(absl::IsNotFound(Refusal(roots, In("root/nothing"))));
  EXPECT_TRUE(absl::IsNotFound(Refusal(roots, In("root/a.txt/below"))));
}

// Symptom: a path through folders by the thousand took all descriptors of the stage while it was
// walked.
TEST_P(DataRootsTest, RefusesAPathThroughVeryManyFolders) {
  std::string most = "root";
  for (int i = 0; i < 256; ++i) most += "/d";
  Write(most + "/a.txt", "deep");
  Write(most + "/d/b.txt", "too deep");
  const DataRoots roots = Roots();
  EXPECT_EQ(TextOf(roots.OpenFile(In(most + "/a.txt"))), "deep");
  EXPECT_THAT(Refusal(roots, In(most + "/d/b.txt")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("more than 256 folders")));
}

TEST_P(DataRootsTest, FollowsNoLinks) {
  Link(In("secret.txt"), "root/out.txt");
  Link("a.txt", "root/in.txt");
  Link(In("other"), "root/folder");
  Link("..", "root/up");
  Link("deep", "root/within");
  const DataRoots roots = Roots();
  for (const char* path : {"out.txt", "in.txt", "folder", "folder/c.txt", "up/secret.txt",
                           "up/root/a.txt", "within/b.txt", "folder/nothing"}) {
    EXPECT_THAT(Refusal(roots, In(absl::StrCat("root/", path))),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("a link, to "), HasSubstr("--data-follow-links"))));
  }
}

TEST_P(DataRootsTest, FollowsLinksToRootsWhereItIsTold) {
  Link("deep/b.txt", "root/near.txt");
  Link(In("root/deep"), "root/absolute");
  Link("../a.txt", "root/deep/back.txt");
  Link("../../root/a.txt", "root/deep/around.txt");  // out and in again
  Link("near.txt", "root/twice.txt");
  Link(In("other"), "root/other");
  Link("../other/c.txt", "root/c.txt");
  const DataRoots roots = Roots({.roots = {In("root"), In("other")}, .follow_links = true});
  EXPECT_EQ(TextOf(roots.OpenFile(In("root/near.txt"))), "b");
  EXPECT_EQ(TextOf(roots.OpenFile(In("root/twice.txt"))), "b");
  EXPECT_EQ(TextOf(roots.OpenFile(In("root/absolute/b.txt"))), "b");
  EXPECT_EQ(TextOf(roots.OpenFile(In("root/deep/back.txt"))), "a");
  EXPECT_EQ(TextOf(roots.OpenFile(In("root/deep/around.txt"))), "a");
  EXPECT_EQ(TextOf(roots.OpenFile(In("root/c.txt"))), "c");
  const auto other = roots.OpenFile(In("root/other/c.txt"));
  EXPECT_EQ(TextOf(other), "c");
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(other->real, In("other/c.txt"));
}

TEST_P(DataRootsTest, FollowsNoLinkOutOfTheRoots) {
  Link(In("secret.txt"), "root/out.txt");
  Link(In("nothing.txt"), "root/nowhere.txt");
  Link("../secret.txt", "root/relative.txt");
  Link("..", "root/up");
  Link("../../../../../../../../../etc/passwd", "root/far.txt");
  Link("/", "root/top");
  Link("/proc/self/root", "root/magic");
  Link("up/secret.txt", "root/twice.txt");
  Link("round", "root/round");
  // An open file, whose link in /proc is no path that could be walked.
  const FileHandle open_file(open(In("secret.txt").c_str(), O_RDONLY | O_CLOEXEC));
  Link(absl::StrCat("/proc/self/fd/", open_file.get()), "root/fd");
  const DataRoots roots = Following();
  for (const char* path : {"out.txt", "nowhere.txt", "relative.txt", "up/secret.txt", "far.txt",
                           "top/etc/passwd", "magic/etc/passwd", "twice.txt", "fd"}) {
    EXPECT_THAT(
        Refusal(roots, In(absl::StrCat("root/", path))),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(HasSubstr("a link out of the folder, to "), HasSubstr("--data-root"))));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(Refusal(roots, In("root/round"))));
  // The same of what is there and what is not, but for the link's own text.
  EXPECT_EQ(Refusal(roots, In("root/out.txt")).code(),
            Refusal(roots, In("root/nowhere.txt")).code());
}

TEST_P(DataRootsTest, ARootMayBeALinkAndIsKnownByBothNames) {
  Link("root", "by-name");
  const DataRoots roots = Roots({.roots = {In("by-name")}});
  EXPECT_EQ(TextOf(roots.OpenFile(In("by-name/a.txt"))), "a");
  const auto opened = roots.OpenFile(In("root/a.txt"));
  EXPECT_EQ(TextOf(opened), "a");
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened->real, In("root/a.txt"));
}

TEST_P(DataRootsTest, ARootMayBeOneFile) {
  Link("secret.txt", "current.txt");
  const DataRoots roots = Roots({.roots = {In("root/a.txt"), In("current.txt")}});
  EXPECT_EQ(TextOf(roots.OpenFile(In("root/a.txt"))), "a");
  EXPECT_EQ(TextOf(roots.OpenFile(In("current.txt"))), "secret") << "the operator's word";
  EXPECT_TRUE(absl::IsPermissionDenied(Refusal(roots, In("root/deep/b.txt"))));
  EXPECT_TRUE(absl::IsNotFound(Refusal(roots, In("root/a.txt/below"))));
  EXPECT_TRUE(absl::IsPermissionDenied(Refusal(roots, In("other/c.txt"))));
}

// A volume may come later than the server.
TEST_P(DataRootsTest, ARootMayComeLater) {
  const DataRoots roots = Roots({.roots = {In("volume")}});
  EXPECT_TRUE(absl::IsNotFound(Refusal(roots, In("volume/d.txt"))));
  Write("volume/d.txt", "d");
  EXPECT_EQ(TextOf(roots.OpenFile(In("volume/d.txt"))), "d");
}

TEST_P(DataRootsTest, OpensNoPipesDevicesAndSockets) {
  ASSERT_EQ(mkfifo(In("root/pipe").c_str(), 0600), 0);
  const FileHandle listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  In("root/socket").copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  for (const char* path : {"pipe", "socket"}) {
    EXPECT_THAT(Roots().OpenFile(In(absl::StrCat("root/", path))).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a file")));
  }
  const DataRoots devices = Roots({.roots = {"/dev"}});
  EXPECT_TRUE(absl::IsInvalidArgument(devices.OpenFile("/dev/null").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Roots().OpenFile(In("root/deep")).status()));
  EXPECT_FALSE(Roots().ListFolder(In("root/a.txt")).ok());
}

// Symptom: another program's lease on a file kept a thread of the stage busy until the lease was
// broken, 45 s as a rule.
TEST_P(DataRootsTest, AFileUnderALeaseIsTriedLater) {
  const FileHandle file(open(In("root/a.txt").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_NE(signal(SIGIO, SIG_IGN), SIG_ERR);  // it says that somebody wants the file
  if (fcntl(file.get(), F_SETLEASE, F_WRLCK) != 0) GTEST_SKIP() << "no leases on this disk";
  const absl::Status status = Roots().OpenFile(In("root/a.txt")).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  ASSERT_EQ(fcntl(file.get(), F_SETLEASE, F_UNLCK), 0);
  EXPECT_EQ(TextOf(Roots().OpenFile(In("root/a.txt"))), "a");
}

// Who holds a descriptor of a folder has that folder, whatever its name leads to by then.
TEST_P(DataRootsTest, AFolderThatBecomesALinkMeanwhileLeadsNowhere) {
  const FileHandle root(open(In("root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const FileHandle deep = OpenName(root, "deep", O_PATH | O_DIRECTORY, GetParam());
  ASSERT_TRUE(deep.open());
  fs::rename(In("root/deep"), In("root/was-deep"));
  Write("other/b.txt", "secret");
  Link(In("other"), "root/deep");
  const FileHandle file = OpenName(deep, "b.txt", O_RDONLY, GetParam());
  std::array<char, 8> text{};
  EXPECT_EQ(read(file.get(), text.data(), text.size()), 1);
  EXPECT_EQ(text[0], 'b');
  EXPECT_FALSE(OpenName(root, "deep", O_PATH | O_DIRECTORY, GetParam()).open());
  fs::remove(In("root/was-deep/b.txt"));
  Link(In("secret.txt"), "root/was-deep/b.txt");
  EXPECT_FALSE(OpenName(deep, "b.txt", O_RDONLY, GetParam()).open());
}

TEST_P(DataRootsTest, TheServersOwnFilesAreNoData) {
  Write("root/key.pem", "key");
  Write("root/state/identity", "id");
  fs::create_hard_link(In("root/key.pem"), In("root/copy.txt"));
  Write("root/run/journal.sqlite", "journal");
  Write("root/run/journal.sqlite-wal", "wal");
  Write("root/run/exports/job/model.safetensors", "weights");
  for (const char* name : {"local.lock", "processes.json", "logs/stage-0.log", "ports/stage-0",
                           "jobs/job/records.ndjson", "stages/stage-0/id", "input.txt"}) {
    Write(absl::StrCat("root/run/", name), "of the run");
  }
  Write("root/run/checkpoints/job/step-000000000050/layer-0000-0007.safetensors", "shard");
  Write("root/elsewhere/job/step-000000000050/MANIFEST.json", "{}");
  Write("root/elsewhere/job/step-000000000050/layer-0000-0007.safetensors", "shard");
  Write("root/checkpoints/d.txt", "d");  // beside no journal
  const std::vector<std::string> never = {In("root/key.pem"), In("root/state"), In("gone")};
  const DataRoots roots = Roots({.never = never});
  for (const char* path :
       {"key.pem", "copy.txt", "state/identity", "run/journal.sqlite", "run/journal.sqlite-wal",
        "run/local.lock", "run/processes.json", "run/logs/stage-0.log", "run/ports/stage-0",
        "run/jobs/job/records.ndjson", "run/stages/stage-0/id",
        "run/checkpoints/job/step-000000000050/layer-0000-0007.safetensors",
        "elsewhere/job/step-000000000050/layer-0000-0007.safetensors"}) {
    const absl::Status refused = Refusal(roots, In(absl::StrCat("root/", path)));
    EXPECT_TRUE(absl::IsPermissionDenied(refused)) << path << ": " << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("is no data"));
  }
  EXPECT_EQ(TextOf(roots.OpenFile(In("root/run/exports/job/model.safetensors"))), "weights");
  EXPECT_EQ(TextOf(roots.OpenFile(In("root/checkpoints/d.txt"))), "d");
  EXPECT_TRUE(roots.ListFolder(In("root/run")).ok());
  // An operator may mean it, but never the journal and the key.
  const DataRoots named =
      Roots({.roots = {In("root/state"), In("root/run"), In("root/elsewhere/job/step-000000000050"),
                       In("root/key.pem")},
             .never = never});
  const DataRoots files =
      Roots({.roots = {In("root/run/input.txt"), In("root/run/journal.sqlite")}});
  EXPECT_EQ(TextOf(files.OpenFile(In("root/run/input.txt"))), "of the run");
  EXPECT_TRUE(absl::IsPermissionDenied(Refusal(files, In("root/run/journal.sqlite"))));
  EXPECT_EQ(TextOf(named.OpenFile(In("root/state/identity"))), "id");
  EXPECT_EQ(TextOf(named.OpenFile(
                In("root/elsewhere/job/step-000000000050/layer-0000-0007.safetensors"))),
            "shard");
  EXPECT_TRUE(absl::IsPermissionDenied(Refusal(named, In("root/run/journal.sqlite"))));
  EXPECT_TRUE(absl::IsPermissionDenied(Refusal(named, In("root/key.pem"))));
  const std::unique_ptr<DataRoots> everything = DataRoots::Everything(never);
  EXPECT_TRUE(absl::IsPermissionDenied(Refusal(*everything, In("root/copy.txt"))));
  EXPECT_TRUE(absl::IsPermissionDenied(Refusal(*everything, In("root/run/journal.sqlite"))));
}

TEST_P(DataRootsTest, EverythingIsAsPathsAreEverywhere) {
  Link(In("other"), "root/other");
  Link("../secret.txt", "root/out.txt");
  const std::unique_ptr<DataRoots> roots = DataRoots::Everything();
  EXPECT_EQ(TextOf(roots->OpenFile(In("secret.txt"))), "secret");
  EXPECT_EQ(TextOf(roots->OpenFile(In("root/out.txt"))), "secret");
  EXPECT_EQ(TextOf(roots->OpenFile(In("root/../secret.txt"))), "secret");
  const auto up = roots->OpenFile(In("root/other/../secret.txt"));
  EXPECT_EQ(TextOf(up), "secret") << "up from where the link leads";
  EXPECT_EQ(TextOf(roots->OpenFile("/../../.." + In("other/c.txt"))), "c");
  const fs::path before = fs::current_path();
  fs::current_path(In("root"));
  EXPECT_EQ(TextOf(roots->OpenFile("a.txt")), "a");
  EXPECT_EQ(TextOf(roots->OpenFile("../secret.txt")), "secret");
  fs::current_path(before);
}

TEST_P(DataRootsTest, WithoutRootsNothingIsRead) {
  DataRoots roots{DataRoots::Options{}};
  for (const std::string& path : {In("root/a.txt"), In("nothing"), std::string("a.txt")}) {
    EXPECT_THAT(Refusal(roots, path),
                StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("--data-root")));
  }
}

TEST_P(DataRootsTest, GivesWeightsToReaders) {
  Link("a.txt", "root/link.txt");
  DataRoots roots = Roots();
  EXPECT_TRUE(roots.Look(In("root/a.txt")).ok());
  EXPECT_TRUE(roots.Look(In("root/link.txt")).ok()) << "who opens it learns why not";
  EXPECT_TRUE(absl::IsNotFound(roots.Look(In("root/nothing"))));
  EXPECT_TRUE(absl::IsNotFound(roots.Look(In("root/a.txt/below"))));
  EXPECT_TRUE(absl::IsPermissionDenied(roots.Look(In("secret.txt"))));
  const auto file = roots.Open(In("root/a.txt"));
  ASSERT_TRUE(file.ok()) << file.status();
  std::array<std::byte, 1> byte;
  CHECK_OK((*file)->Read(0, byte));
  EXPECT_EQ(byte[0], std::byte('a'));
}

}  // namespace
}  // namespace stagecoach
