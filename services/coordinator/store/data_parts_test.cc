// Parts of data sets: they are complete only with the right SHA-256, whatever cut their upload.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/hash.h"
#include "base/testing/file_text.h"
#include "base/testing/status_is.h"
#include "base/testing/temporary_folder.h"
#include "services/coordinator/store/object_files.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string RandomText(size_t count) {
  std::mt19937_64 random(count);
  std::string text(count, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

class DataPartsTest : public ::testing::Test {
 protected:
  DataPartsTest() {
    std::filesystem::create_directories(folder_.File("data/parts/user%2Falice"));
    Restart();
  }
  void Restart(int64_t reserve = 0) {
    files_ = std::make_unique<ObjectFiles>(ObjectFolders{.checkpoints = folder_.File("checkpoints"),
                                                         .exports = folder_.File("exports"),
                                                         .data = folder_.File("data")},
                                           reserve);
  }
  static std::string NameOfPart(const std::string& text) {
    return absl::StrCat("data/parts/user%2Falice/", Sha256Hex(text));
  }
  std::unique_ptr<ObjectUpload> Begin(const std::string& name) {
    auto upload = files_->BeginUpload(name);
    EXPECT_TRUE(upload.ok()) << upload.status();
    return upload.ok() ? *std::move(upload) : nullptr;
  }
  // The bytes from `from` to `to` by an upload of their own.
  void Append(const std::string& name, const std::string& text, size_t from, size_t to) {
    const auto upload = Begin(name);
    ASSERT_NE(upload, nullptr);
    const auto size =
        upload->Append(static_cast<int64_t>(from), BytesOf(text).subspan(from, to - from));
    ASSERT_TRUE(size.ok()) << size.status();
  }

  const TemporaryFolder folder_;
  std::unique_ptr<ObjectFiles> files_;
  const std::string text_ = RandomText(3'000'000);
  const std::string name_ = NameOfPart(text_);
};

TEST_F(DataPartsTest, APartInOneGo) {
  const auto upload = Begin(name_);
  for (size_t at = 0; at < text_.size(); at += 500'000) {
    ASSERT_TRUE(upload->Append(static_cast<int64_t>(at), BytesOf(text_).subspan(at, 500'000)).ok());
  }
  EXPECT_FALSE(files_->Find(name_)->complete);
  ASSERT_TRUE(upload->Finish().ok());
  EXPECT_TRUE(files_->Find(name_)->complete);
  EXPECT_EQ(FileText(folder_.File(name_)), text_);
  EXPECT_TRUE(Begin(name_)->Finish().ok()) << "the end may be said again";
}

TEST_F(DataPartsTest, AnUploadGoesOnByAnotherClientAndAfterARestart) {
  for (const bool restart : {false, true}) {
    SCOPED_TRACE(restart);
    std::filesystem::remove(folder_.File(name_));
    Append(name_, text_, 0, 1'000'000);
    if (restart) Restart();
    EXPECT_EQ(files_->Find(name_)->committed, 1'000'000);
    Append(name_, text_, 1'000'000, 2'000'000);
    const auto last = Begin(name_);
    ASSERT_TRUE(last->Append(2'000'000, BytesOf(text_).subspan(2'000'000)).ok());
    ASSERT_TRUE(last->Finish().ok());
    EXPECT_EQ(FileText(folder_.File(name_)), text_);
  }
}

TEST_F(DataPartsTest, OtherBytesAreRefusedAndMayComeAnew) {
  std::string other = text_;
  other[1'500'000] ^= 1;
  for (const bool restart : {false, true}) {
    SCOPED_TRACE(restart);
    Append(name_, text_, 0, 1'000'000);
    if (restart) Restart();
    const auto upload = Begin(name_);
    ASSERT_TRUE(upload->Append(1'000'000, BytesOf(other).subspan(1'000'000)).ok());
    EXPECT_THAT(upload->Finish(),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr(name_), HasSubstr("changed while it was uploaded"),
                               Not(HasSubstr(folder_.path())))));
    EXPECT_EQ(files_->Find(name_).status().code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(upload->Append(0, BytesOf(text_)).status().code(), absl::StatusCode::kAborted);
  }
  Append(name_, text_, 0, text_.size());
  EXPECT_TRUE(Begin(name_)->Finish().ok());
}

// A file that somebody changed behind the store's back is not taken for what was sent.
TEST_F(DataPartsTest, AShorterOneIsRefusedToo) {
  Append(name_, text_, 0, 2'999'999);
  EXPECT_EQ(Begin(name_)->Finish().code(), absl::StatusCode::kDataLoss);
}

TEST_F(DataPartsTest, ManyUploadsAtATime) {
  std::vector<std::string> texts;
  for (int i = 0; i < 600; ++i) texts.push_back(absl::StrCat("part ", i));
  for (const std::string& text : texts) Append(NameOfPart(text), text, 0, 3);
  for (const std::string& text : texts) Append(NameOfPart(text), text, 3, text.size());
  for (const std::string& text : texts) {
    EXPECT_TRUE(Begin(NameOfPart(text))->Finish().ok());
    EXPECT_EQ(FileText(folder_.File(NameOfPart(text))), text);
  }
}

TEST_F(DataPartsTest, TheLastOfTheDiskIsNotForDataSets) {
  Append(name_, text_, 0, 1000);
  Restart(std::numeric_limits<int64_t>::max());
  EXPECT_THAT(files_->BeginUpload(name_).status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("bytes free"), HasSubstr("`stagecoach data remove`"))));
  Restart();
  EXPECT_EQ(files_->Find(name_)->committed, 1000) << "it goes on when there is room";
}

TEST_F(DataPartsTest, NamesLeadNowhereElseAndSetsAreOnlyRead) {
  const std::string digest(64, 'a');
  for (const std::string& name :
       {absl::StrCat("data/parts/user%2Falice/", digest, ".part"),
        absl::StrCat("data/parts/../", digest), absl::StrCat("data/parts/%/", digest),
        absl::StrCat("data/parts//", digest), absl::StrCat("data/parts/", digest),
        absl::StrCat("data/parts/a/b/", digest), std::string("data/parts/a/manifest"),
        std::string("data/sets/a/manifest"), absl::StrCat("data/sets/", digest, "/info"),
        absl::StrCat("data/sets/", digest, "/../x"), absl::StrCat("data/names/a/", digest),
        absl::StrCat("data/sets/.new-0123/", digest)}) {
    EXPECT_EQ(files_->Find(name).status().code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_EQ(files_->BeginUpload(name).status().code(), absl::StatusCode::kInvalidArgument)
        << name;
  }
  const std::string set = absl::StrCat("data/sets/", digest);
  folder_.Write(absl::StrCat(set, "/manifest"), "m");
  EXPECT_EQ((*files_->Open(absl::StrCat(set, "/manifest")))->size(), 1);
  for (const std::string& name : {absl::StrCat(set, "/manifest"), absl::StrCat(set, "/", digest)}) {
    EXPECT_EQ(files_->BeginUpload(name).status().code(), absl::StatusCode::kPermissionDenied);
    EXPECT_EQ(files_->Remove(name).code(), absl::StatusCode::kPermissionDenied);
  }
}

TEST(ObjectNames, OwnersHaveFoldersOfTheirOwn) {
  EXPECT_EQ(OwnerKey(""), "_");
  EXPECT_EQ(OwnerKey("user/alice"), "user%2Falice");
  EXPECT_EQ(OwnerKey("user/a%2Fb"), "user%2Fa%252Fb");
  EXPECT_EQ(OwnerKey(".."), "..") << "no owner: one has a role and a slash";
  const std::string longest = absl::StrCat("operator/", std::string(253, 'a'));
  EXPECT_EQ(OwnerKey(longest), absl::StrCat("_", Sha256Hex(longest)));
  for (const std::string& owner : {std::string(), std::string("user/a%2Fb"), std::string("..")}) {
    EXPECT_EQ(OwnerOfKey(OwnerKey(owner)), owner);
  }
  for (const std::string& key : {OwnerKey(longest), std::string("a%2"), std::string("a%2f"),
                                 std::string("a%61"), std::string("a/b"), std::string("%")}) {
    EXPECT_EQ(OwnerOfKey(key), std::nullopt) << key;
  }
  EXPECT_EQ(PartsObject("user/alice"), "data/parts/user%2Falice");
  EXPECT_TRUE(PlaceOf({}, absl::StrCat(PartsObject("user/alice"), "/", std::string(64, '0'))).ok());
  EXPECT_FALSE(PlaceOf({}, absl::StrCat(PartsObject(".."), "/", std::string(64, '0'))).ok());
}

}  // namespace
}  // namespace stagecoach
