// Uploads that are cut, that others have begun, and whose files change.
#include "services/cli/data/upload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/status_is.h"
#include "base/testing/temporary_folder.h"
#include "services/cli/data/file_set.h"
#include "services/cli/data/proven_bytes.h"
#include "services/cli/testing/fake_data_client.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;

constexpr size_t kBigBytes = 17 << 20;  // two pieces and a small one

class UploadTest : public testing::Test {
 protected:
  UploadTest() {
    folder_.Write("big", std::string(kBigBytes, 'b'));
    folder_.Write("small", "s");
    Read();
  }
  void Read() {
    set_ = FileSet();
    EXPECT_TRUE(set_.Add(folder_.path(), "").ok());
    EXPECT_TRUE(set_.Sort().ok());
    auto parts = MakeParts(set_, [](int64_t, int64_t) { return true; });
    ASSERT_TRUE(parts.ok()) << parts.status();
    parts_ = *std::move(parts);
  }
  absl::StatusOr<v1::DataSet> Run(const DataSetName& name = {}) {
    return Upload(
        client_, parts_, name,
        [this](int64_t done, int64_t total) {
          EXPECT_LE(done, total);
          done_ = done;
          total_ = total;
        },
        &stop_, [this](const LocalPart& part) { changed_.push_back(part.files.front()->here); });
  }
  FakeDataClient::Object& Big() { return client_.parts[parts_.parts[0].sha256]; }

  const TemporaryFolder folder_;
  FileSet set_;
  LocalParts parts_;
  FakeDataClient client_;
  StopSignal stop_;
  int64_t done_ = -1, total_ = -1;
  std::vector<std::string> changed_;  // files that Upload said so of
};

TEST_F(UploadTest, BringsWhatIsMissingAndTheSecondTimeNothing) {
  const auto set = Run({.name = "mine", .replace = false});
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->name(), "mine");
  EXPECT_EQ(set->files(), 2);
  EXPECT_EQ(done_, total_);
  EXPECT_GT(total_, static_cast<int64_t>(kBigBytes));
  const int appends = client_.appends;
  const auto again = Run();
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->id(), set->id());
  EXPECT_EQ(total_, 0);
  EXPECT_EQ(client_.appends, appends);
}

TEST_F(UploadTest, BringsAllAgainIfAsked) {
  ASSERT_TRUE(Run().ok());
  Big().bytes[5] = 'x';  // by a disk
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(Big().bytes[5], 'x');
  ASSERT_TRUE(Run({.name = "", .replace = false, .again = true}).ok());
  EXPECT_EQ(Big().bytes[5], 'b');
  EXPECT_GT(total_, 9 << 20);
}

TEST_F(UploadTest, GoesOnBehindWhatACutUploadHasBrought) {
  client_.appends_left = 2;
  EXPECT_THAT(Run().status(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("cut")));
  EXPECT_EQ(Big().bytes.size(), 16u << 20);
  client_.appends_left = -1;
  const int before = client_.appends;
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(client_.appends - before, 3) << "the rest, the small file, the manifest";
}

TEST_F(UploadTest, OfAllBytesThatAreThereOnlyTheEndIsMissing) {
  Big().bytes = std::string(kBigBytes, 'b');
  ASSERT_TRUE(Run().ok());
  EXPECT_TRUE(Big().complete);
}

TEST_F(UploadTest, WhatAnotherOneHasSpoiledIsSentAnew) {
  Big().bytes = "a file that was changed";
  ASSERT_TRUE(Run().ok());
  EXPECT_TRUE(Big().complete);
}

TEST_F(UploadTest, AnotherOneThatIsFasterIsNoError) {
  bool once = true;
  client_.on_append = [&] {
    if (!std::exchange(once, false)) return;
    Big() = {.bytes = std::string(kBigBytes, 'b'), .complete = true};
  };
  ASSERT_TRUE(Run().ok());
}

TEST_F(UploadTest, AChangedFileIsNamed) {
  folder_.Write("big", std::string(kBigBytes, 'c'));
  EXPECT_THAT(Run().status(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                       HasSubstr(folder_.File("big") + ": was changed")));
  EXPECT_TRUE(changed_.empty()) << "its times tell";
  EXPECT_TRUE(client_.sets.empty());
  Read();
  EXPECT_TRUE(Run().ok());
}

// A file that is another one by the same times: its digest came from a cache.
TEST_F(UploadTest, ADigestThatWasWrongIsTold) {
  parts_.parts[0].sha256 = std::string(64, '0');
  EXPECT_THAT(Run().status(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                       HasSubstr(folder_.File("big") + ": was changed")));
  EXPECT_THAT(changed_, testing::ElementsAre(folder_.File("big")));
}

// Symptom: grants end after hours, and with the coordinator's process; the upload ended with them.
TEST_F(UploadTest, AGrantThatEndsIsRenewed) {
  client_.on_append = [this] {
    if (client_.appends == 2) client_.write_grant = "another";
  };
  const auto set = Run();
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(done_, total_);
}

TEST_F(UploadTest, AGrantThatOpensNothingIsAskedForOnce) {
  int grants = 0;
  client_.on_append = [&] { client_.write_grant = absl::StrCat("never ", ++grants); };
  EXPECT_THAT(Run().status(),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("data/parts")));
  EXPECT_EQ(grants, 2);
}

// Symptom: the removal of another set took the part that was there, and the upload failed at its end.
TEST_F(UploadTest, APartThatGoesMeanwhileIsSentAgain) {
  client_.on_put = [this] {
    client_.on_put = nullptr;
    client_.parts.erase(parts_.parts[0].sha256);
  };
  const auto set = Run();
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->files(), 2);
}

TEST_F(UploadTest, AStopEndsItAndLeavesWhatIsThere) {
  client_.on_append = [this] { stop_.Request(absl::CancelledError("interrupted")); };
  EXPECT_TRUE(absl::IsCancelled(Run().status()));
  EXPECT_EQ(Big().bytes.size(), 8u << 20);
}

// With a bucket nobody but this client compares the SHA-256.
class DirectUploadTest : public UploadTest {
 protected:
  DirectUploadTest() { client_.direct = true; }
  void Cut() {
    client_.appends_left = 2;
    EXPECT_TRUE(absl::IsUnavailable(Run().status()));
    ASSERT_EQ(Big().uploaded.size(), 2u);
    client_.appends_left = -1;
  }
};

TEST_F(DirectUploadTest, GoesOnBehindThePartsThatAreGood) {
  Cut();
  const int before = client_.appends;
  const auto set = Run();
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(client_.appends - before, 3) << "the rest, the small file, the manifest";
  EXPECT_EQ(Sha256Hex(Big().bytes), parts_.parts[0].sha256);
}

TEST_F(DirectUploadTest, PartsOfAFileThatWasChangedSinceAreSentAnew) {
  Cut();
  Big().uploaded[1].set_etag("\"another\"");
  const int before = client_.appends;
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(client_.appends - before, 4);
  EXPECT_EQ(Sha256Hex(Big().bytes), parts_.parts[0].sha256);
}

TEST_F(DirectUploadTest, AFileThatIsChangedIsNeverComplete) {
  folder_.Write("big", std::string(kBigBytes, 'c'));
  EXPECT_THAT(Run().status(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                       HasSubstr(folder_.File("big") + ": was changed")));
  EXPECT_FALSE(Big().complete);
  EXPECT_TRUE(client_.sets.empty());
}

TEST_F(DirectUploadTest, AnotherOneThatIsFasterIsNoError) {
  client_.on_append = [&] {
    if (client_.appends != 1) return;
    Big() = {.bytes = std::string(kBigBytes, 'b'), .complete = true};
  };
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(Big().bytes.size(), kBigBytes);
}

TEST(SentPieces, AreAsManyAndAsLargeAsAStoreTakes) {
  EXPECT_EQ(SentPieceBytes(1), 8 << 20);
  const int64_t terabytes = int64_t{5} << 40;
  EXPECT_LE((terabytes + SentPieceBytes(terabytes) - 1) / SentPieceBytes(terabytes), 10000);
}

}  // namespace
}  // namespace stagecoach
