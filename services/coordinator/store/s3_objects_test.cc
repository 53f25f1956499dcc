// A stage's files in a bucket: the coordinator signs URLs, the stage moves the bytes, and the server
// fails on command. The stage has no credentials.
#include "services/coordinator/store/s3_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <random>

#include "absl/strings/str_cat.h"
#include "base/testing/status_is.h"
#include "checkpoint/manifest.h"
#include "checkpoint/testing/toy_checkpoint.h"
#include "services/common/grpc/grpc_channel.h"
#include "services/common/grpc/grpc_server.h"
#include "services/common/s3/fake_s3_testing.h"
#include "services/common/store/remote_store_files.h"
#include "services/common/tls/tls_identity.h"
#include "services/coordinator/store/store_service.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using S3Fault = FakeS3::Fault;
using Use = ObjectGrants::Use;

constexpr char kTemporary[] = "checkpoints/job/.tmp-1-4-0123456789abcdef";
constexpr char kCommitted[] = "checkpoints/job/step-000000000004";

std::vector<std::byte> Noise(size_t count) {
  std::mt19937_64 random(count);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

class S3ObjectsTest : public ::testing::Test {
 protected:
  S3ObjectsTest() {
    GrpcServerOptions options;
    options.listen = "127.0.0.1:0";
    server_ = std::make_unique<GrpcServer>(
        options, std::vector<GrpcServer::NamedService>{{"stagecoach.v1.StoreService", &service_}},
        nullptr);
    EXPECT_TRUE(server_->Start().ok());
    stage_ = std::make_unique<RemoteStoreFiles>(
        PosixFileSystem(),
        StoreClient::Options{.dial =
                                 [this] {
                                   return MakeControlChannel(
                                       absl::StrCat("127.0.0.1:", server_->port()),
                                       ChannelCredentialsOf(nullptr));
                                 },
                             .give_up_seconds = 20});
    stage_->Admit(absl::StrCat(kStorePrefix, kTemporary), grants_.Make(kTemporary, Use::kWrite));
    stage_->Admit(absl::StrCat(kStorePrefix, kCommitted), grants_.Make(kCommitted, Use::kRead));
  }
  ~S3ObjectsTest() override { server_->Shutdown(0); }

  static std::string Path(const std::string& file, const char* folder = kTemporary) {
    return absl::StrCat(kStorePrefix, folder, "/", file);
  }
  // In pieces that fit no part.
  absl::Status Write(const std::string& path, std::span<const std::byte> bytes) {
    absl::StatusOr<std::unique_ptr<WritableFile>> file = stage_->Create(path);
    if (!file.ok()) return file.status();
    while (!bytes.empty()) {
      const auto now = bytes.first(std::min<size_t>(bytes.size(), 777'777));
      if (const absl::Status status = (*file)->Append(now); !status.ok()) return status;
      bytes = bytes.subspan(now.size());
    }
    if (const absl::Status status = (*file)->Sync(); !status.ok()) return status;
    return (*file)->Close();
  }
  absl::StatusOr<std::vector<std::byte>> ReadWhole(const std::string& path) {
    absl::StatusOr<std::unique_ptr<ReadableFile>> file = stage_->Open(path);
    if (!file.ok()) return file.status();
    std::vector<std::byte> bytes(static_cast<size_t>((*file)->size()));
    for (size_t at = 0; at < bytes.size();) {
      const size_t now = std::min<size_t>(bytes.size() - at, 1 << 20);
      const auto part = std::span(bytes).subspan(at, now);
      if (const absl::Status status = (*file)->Read(static_cast<int64_t>(at), part); !status.ok()) {
        return status;
      }
      at += now;
    }
    return bytes;
  }
  // Every so manieth request of a stage fails, in turn in every way.
  void FailEvery(int nth) { nth_ = nth; }
  S3Fault Next(const FakeS3::Request&) {
    const int number = ++asked_;
    if (nth_ == 0 || number % nth_ != 0) return S3Fault::kNone;
    return static_cast<S3Fault>(1 + (number / nth_) % 6);
  }

  std::atomic<int> nth_{0}, asked_{0};
  FakeS3 bucket_{[this](const FakeS3::Request& request) { return Next(request); }};
  HttpTransfer transfer_;
  S3CredentialSource credentials_{&transfer_, SystemClock::Get(), [](const std::string& name) {
                                    if (name == "AWS_ACCESS_KEY_ID") return FakeS3::kAccessKey;
                                    return name == "AWS_SECRET_ACCESS_KEY" ? "s" : "";
                                  }};
  S3Client client_{
      {*ParseS3Location("s3://bucket/p", bucket_.endpoint(), ""), 20}, &transfer_, &credentials_};
  S3Files files_{PosixFileSystem(), &client_};
  S3Objects objects_{&files_, &client_};
  ObjectFiles local_{
      ObjectFolders{.checkpoints = "/nowhere", .exports = "/nowhere", .data = "/nowhere"}};
  ObjectGrants grants_;
  StoreService service_{&local_, &grants_, &objects_};
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<RemoteStoreFiles> stage_;
};

TEST_F(S3ObjectsTest, WhatAStageWritesLiesInTheBucketAndStagesReadIt) {
  for (const size_t size : {size_t{0}, size_t{5}, size_t{16} << 20, (size_t{33} << 20) + 1}) {
    SCOPED_TRACE(size);
    const std::string file = absl::StrCat("layer-", size);
    const std::vector<std::byte> bytes = Noise(size);
    const absl::Status written = Write(Path(file), bytes);
    ASSERT_TRUE(written.ok()) << written;
    EXPECT_TRUE(absl::IsAlreadyExists(stage_->Create(Path(file)).status()));
    const absl::StatusOr<std::vector<std::byte>> there = ReadWhole(Path(file));
    ASSERT_TRUE(there.ok()) << there.status();
    EXPECT_TRUE(*there == bytes);
    EXPECT_TRUE(bucket_.objects().contains(absl::StrCat("p/", kTemporary, "/", file)));
  }
  EXPECT_EQ(bucket_.uploads(), 0u);
  const std::string manifest = FormatManifest(ToyManifest("job", 1, 4));
  ASSERT_TRUE(client_
                  .PutIfAbsent(absl::StrCat("p/", kTemporary, "/MANIFEST.json"),
                               std::as_bytes(std::span(manifest)))
                  .ok());
  ASSERT_TRUE(
      files_.Rename(absl::StrCat(kStorePrefix, kTemporary), absl::StrCat(kStorePrefix, kCommitted))
          .ok());
  EXPECT_EQ(ReadWhole(Path("layer-5", kCommitted))->size(), 5u);
  EXPECT_TRUE(stage_->RemoveAll(Path("layer-5")).ok());
  EXPECT_TRUE(absl::IsNotFound(stage_->Look(Path("layer-5"))));
}

TEST_F(S3ObjectsTest, FaultsOfTheServerChangeNoByte) {
  FailEvery(3);
  for (int round = 0; round < 6; ++round) {
    const std::string file = absl::StrCat("layer-", round);
    const std::vector<std::byte> bytes = Noise((size_t{17} << 20) + static_cast<size_t>(round));
    const absl::Status written = Write(Path(file), bytes);
    ASSERT_TRUE(written.ok()) << written;
    const absl::StatusOr<std::vector<std::byte>> there = ReadWhole(Path(file));
    ASSERT_TRUE(there.ok()) << there.status();
    EXPECT_TRUE(*there == bytes);
  }
}

TEST_F(S3ObjectsTest, OnlyShardsOfACheckpointThatIsBegunAreWritten) {
  const std::string manifest = Path("MANIFEST.json");
  EXPECT_THAT(Write(manifest, Noise(3)),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("only shards")));
  EXPECT_TRUE(absl::IsPermissionDenied(Write(Path("x", kCommitted), Noise(3))) ||
              absl::IsNotFound(Write(Path("x", kCommitted), Noise(3))));
  EXPECT_THAT(bucket_.objects(), IsEmpty());
}

TEST_F(S3ObjectsTest, AnUploadThatWasLeftGoesWithItsObject) {
  {
    absl::StatusOr<std::unique_ptr<WritableFile>> file = stage_->Create(Path("layer-0"));
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Append(Noise(size_t{16} << 20)).ok());
  }
  EXPECT_EQ(bucket_.uploads(), 1u);
  EXPECT_TRUE(stage_->RemoveAll(Path("layer-0")).ok());
  EXPECT_EQ(bucket_.uploads(), 0u);
  const absl::Status written = Write(Path("layer-0"), Noise(7));
  EXPECT_TRUE(written.ok()) << written;
}

TEST_F(S3ObjectsTest, ErrorsOfTheBucketNameTheObjectAndNoUrl) {
  const std::vector<std::byte> bytes = Noise(100);
  ASSERT_TRUE(Write(Path("layer-0"), bytes).ok());
  const absl::StatusOr<std::unique_ptr<ReadableFile>> file = stage_->Open(Path("layer-0"));
  ASSERT_TRUE(file.ok()) << file.status();
  bucket_.Set(absl::StrCat("p/", kTemporary, "/layer-0"), "short");
  std::vector<std::byte> target(100);
  EXPECT_THAT(
      (*file)->Read(0, target),
      StatusIs(absl::StatusCode::kDataLoss,
               testing::AllOf(HasSubstr("layer-0: ended at byte 5"), Not(HasSubstr("X-Amz")))));
}

}  // namespace
}  // namespace stagecoach
