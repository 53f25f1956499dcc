// The client against a server that fails on command: what is repeated, what is told, and that a
// conditional put whose answer got lost is known for what it was.
#include "services/common/s3/s3_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/testing/status_is.h"
#include "services/common/s3/fake_s3_testing.h"

namespace stagecoach {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using S3Fault = FakeS3::Fault;

class S3ClientTest : public ::testing::Test {
 protected:
  S3ClientTest() : server_([this](const FakeS3::Request& request) { return Next(request); }) {}

  S3Fault Next(const FakeS3::Request&) {
    const int left = faults_--;
    return left > 0 ? fault_.load() : S3Fault::kNone;
  }
  void Fail(S3Fault fault, int times = 1) {
    fault_ = fault;
    faults_ = times;
  }
  S3Client::Options Options() {
    S3Client::Options options{.location =
                                  *ParseS3Location("s3://bucket/p", server_.endpoint(), "")};
    options.give_up_seconds = 5;
    return options;
  }
  static std::span<const std::byte> Bytes(const std::string& text) {
    return std::as_bytes(std::span(text));
  }

  std::atomic<S3Fault> fault_{S3Fault::kNone};
  std::atomic<int> faults_{0};
  FakeS3 server_;
  HttpTransfer transfer_;
  std::string key_ = FakeS3::kAccessKey;
  S3CredentialSource credentials_{&transfer_, SystemClock::Get(), [this](const std::string& name) {
                                    if (name == "AWS_ACCESS_KEY_ID") return key_;
                                    return std::string(name == "AWS_SECRET_ACCESS_KEY" ? "s" : "");
                                  }};
  S3Client client_{Options(), &transfer_, &credentials_};
};

TEST_F(S3ClientTest, PutsReadsListsAndDeletes) {
  for (const std::string key : {"p/a+b", "p/c/d", "p/c/e", "q"}) {
    ASSERT_TRUE(client_.Put(key, Bytes(key)).ok());
  }
  EXPECT_EQ(*client_.Get("p/a+b"), "p/a+b");
  EXPECT_EQ(*client_.Size("p/c/d"), 5);
  std::string part(2, ' ');
  ASSERT_TRUE(client_.Read("p/c/d", 3, std::as_writable_bytes(std::span(part))).ok());
  EXPECT_EQ(part, "/d");
  server_.SetPageSize(1);
  const absl::StatusOr<S3Listing> all = client_.List("p/", false);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->objects.size(), 3u);
  const absl::StatusOr<S3Listing> flat = client_.List("p/", true);
  ASSERT_EQ(flat->objects.size(), 1u);
  EXPECT_EQ(flat->objects[0].key, "p/a+b");
  EXPECT_THAT(flat->prefixes, ElementsAre("p/c/"));
  EXPECT_TRUE(client_.Delete("p/c/d").ok());
  EXPECT_TRUE(client_.Delete("p/c/d").ok()) << "again";
  EXPECT_TRUE(absl::IsNotFound(client_.Size("p/c/d").status()));
  EXPECT_TRUE(absl::IsNotFound(client_.Get("p/c/d").status()));
}

TEST_F(S3ClientTest, GoesOnAfterPassingFaults) {
  for (const S3Fault fault : {S3Fault::kError, S3Fault::kBusy, S3Fault::kConflict,
                              S3Fault::kCutBefore, S3Fault::kCutAfter, S3Fault::kCutMiddle}) {
    SCOPED_TRACE(static_cast<int>(fault));
    const std::string key = absl::StrCat("p/", static_cast<int>(fault));
    Fail(fault, 2);
    EXPECT_TRUE(client_.PutIfAbsent(key, Bytes("mine")).ok());
    Fail(fault, 2);
    EXPECT_TRUE(absl::IsAlreadyExists(client_.PutIfAbsent(key, Bytes("other"))));
    EXPECT_EQ(*client_.Get(key), "mine");
    std::string text(4, ' ');
    Fail(fault, 2);
    EXPECT_TRUE(client_.Read(key, 0, std::as_writable_bytes(std::span(text))).ok());
    EXPECT_EQ(text, "mine");
  }
}

TEST_F(S3ClientTest, OfManyThatPutTheSameNameOneWins) {
  for (int round = 0; round < 20; ++round) {
    const std::string key = absl::StrCat("p/", round);
    std::atomic<int> won{0};
    std::vector<std::thread> threads;
    for (int writer = 0; writer < 4; ++writer) {
      threads.emplace_back([&, writer] {
        won += client_.PutIfAbsent(key, Bytes(absl::StrCat("writer ", writer))).ok();
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(won, 1);
  }
}

TEST_F(S3ClientTest, AnUnfinishedUploadIsListedWithItsPartsUpToTheFirstGap) {
  server_.SetPageSize(2);
  const std::string id = *client_.BeginParts("p/large");
  ASSERT_TRUE(client_.BeginParts("other").ok());
  for (const int part : {1, 2, 3, 5}) {
    const std::string url = *client_.Presign(
        "PUT", "p/large", {{"partNumber", absl::StrCat(part)}, {"uploadId", id}}, 60);
    ASSERT_TRUE(transfer_.Do({.method = "PUT", .url = url, .body = Bytes("part")})->ok());
  }
  const auto uploads = client_.ListUploads("p/");
  ASSERT_TRUE(uploads.ok()) << uploads.status();
  ASSERT_EQ(uploads->size(), 1u);
  EXPECT_EQ(uploads->front().key, "p/large");
  EXPECT_EQ(uploads->front().id, id);
  EXPECT_NEAR(uploads->front().begun_seconds, SystemClock::Get()->UnixSeconds(), 60);
  const auto parts = client_.ListParts("p/large", id);
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_EQ(parts->size(), 3u) << "two pages, and then a gap";
  EXPECT_EQ(parts->back().bytes, 4);
  EXPECT_EQ(parts->back().etag, absl::StrCat("\"", Md5Hex(Bytes("part")), "\""));
  EXPECT_TRUE(client_.DropUpload("p/large", id).ok());
  EXPECT_TRUE(client_.DropUpload("p/large", id).ok());
  EXPECT_TRUE(absl::IsNotFound(client_.ListParts("p/large", id).status()));
}

TEST_F(S3ClientTest, PartsMakeOneObjectAlsoWhenTheAnswerIsLost) {
  const std::string id = *client_.BeginParts("p/large");
  std::vector<std::string> etags;
  for (int part = 1; part <= 2; ++part) {
    const std::string content(static_cast<size_t>(part), 'x');
    const std::string url = *client_.Presign(
        "PUT", "p/large", {{"partNumber", absl::StrCat(part)}, {"uploadId", id}}, 60);
    const absl::StatusOr<HttpAnswer> put =
        transfer_.Do({.method = "PUT", .url = url, .body = Bytes(content)});
    ASSERT_TRUE(put.ok() && put->ok());
    etags.push_back(put->Header("etag"));
  }
  Fail(S3Fault::kCutAfter);
  EXPECT_TRUE(client_.CompleteParts("p/large", id, etags, 3).ok());
  EXPECT_EQ(*client_.Get("p/large"), "xxx");
  EXPECT_TRUE(absl::IsDataLoss(client_.CompleteParts("p/large", id, etags, 4)));
  ASSERT_TRUE(client_.BeginParts("p/left").ok());
  EXPECT_EQ(server_.uploads(), 1u);
  EXPECT_TRUE(client_.DropParts("p/").ok());
  EXPECT_EQ(server_.uploads(), 0u);
}

TEST_F(S3ClientTest, APresignedUrlNeedsNoCredentials) {
  server_.Set("p/a", "content");
  const std::string url = *client_.Presign("GET", "p/a", {}, 60);
  const absl::StatusOr<HttpAnswer> answer = transfer_.Do({.method = "GET", .url = url});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->body, "content");
  const size_t query = url.find('?');
  EXPECT_EQ(transfer_.Do({.method = "GET", .url = url.substr(0, query)})->status, 403);
}

TEST_F(S3ClientTest, ErrorsNameTheRemedy) {
  S3Client::Options other = Options();
  other.location = *ParseS3Location("s3://other/p", server_.endpoint(), "");
  S3Client elsewhere(other, &transfer_, &credentials_);
  EXPECT_THAT(elsewhere.List("p/", true).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("--store=s3://other/p: http://127.0.0.1")));
  key_ = "wrong";
  credentials_.Forget();
  EXPECT_THAT(client_.Get("p/a").status(),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("renew them")));
}

TEST_F(S3ClientTest, GivesUpAndEndsAtShutdown) {
  S3Client::Options options = Options();
  options.give_up_seconds = 0.1;
  S3Client hasty(options, &transfer_, &credentials_);
  Fail(S3Fault::kBusy, 1000);
  EXPECT_THAT(hasty.Get("p/a").status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("nothing has moved for 0.1 s")));
  std::thread closer([this] { transfer_.Shutdown(); });
  EXPECT_TRUE(absl::IsCancelled(client_.Get("p/a").status()));
  closer.join();
}

// A read is what is asked for, whatever breaks in between.
TEST_F(S3ClientTest, LongReadsAreWholeUnderFaults) {
  std::mt19937_64 random(17);
  std::string content(200'000, ' ');
  for (char& c : content) c = static_cast<char>(random());
  server_.Set("p/long", content);
  for (int round = 0; round < 50; ++round) {
    const size_t offset = random() % content.size();
    std::string text(1 + random() % (content.size() - offset), ' ');
    Fail(static_cast<S3Fault>(random() % 7), static_cast<int>(random() % 3));
    const absl::Status read = client_.Read("p/long", static_cast<int64_t>(offset),
                                           std::as_writable_bytes(std::span(text)));
    ASSERT_TRUE(read.ok()) << read;
    EXPECT_EQ(text, content.substr(offset, text.size()));
  }
}

}  // namespace
}  // namespace stagecoach
