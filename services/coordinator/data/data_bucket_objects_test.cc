// Parts of data sets in a bucket, as clients and stages reach them: by grants and URLs, while the
// server fails on command.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/status_is.h"
#include "services/common/grpc/grpc_channel.h"
#include "services/common/grpc/grpc_server.h"
#include "services/common/s3/fake_s3_testing.h"
#include "services/common/store/store_client.h"
#include "services/common/tls/tls_identity.h"
#include "services/coordinator/data/data_bucket.h"
#include "services/coordinator/data/data_catalog.h"
#include "services/coordinator/data/data_set_testing.h"
#include "services/coordinator/store/object_names.h"
#include "services/coordinator/store/store_service.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;
using S3Fault = FakeS3::Fault;
using Use = ObjectGrants::Use;

constexpr char kUploader[] = "user/ann";
constexpr size_t kUploadPiece = size_t{8} << 20;

class DataBucketObjectsTest : public ::testing::Test {
 protected:
  DataBucketObjectsTest() {
    objects_.ServeDataSets(&shelf_);
    GrpcServerOptions options;
    options.listen = "127.0.0.1:0";
    server_ = std::make_unique<GrpcServer>(
        options, std::vector<GrpcServer::NamedService>{{"stagecoach.v1.StoreService", &service_}},
        nullptr);
    EXPECT_TRUE(server_->Start().ok());
    DataCatalog::Options catalog;
    catalog.shelf = &shelf_;
    catalog_ = DataCatalog::Open(catalog).value();
    std::mt19937_64 random(7);
    for (std::byte& byte : large_) byte = static_cast<std::byte>(random());
    Sha256 hash;
    hash.Update(large_);
    large_sha256_ = hash.Hex();
  }
  ~DataBucketObjectsTest() override { server_->Shutdown(0); }

  std::unique_ptr<StoreClient> Client() {
    return std::make_unique<StoreClient>(StoreClient::Options{
        .dial =
            [this] {
              return MakeControlChannel(absl::StrCat("127.0.0.1:", server_->port()),
                                        ChannelCredentialsOf(nullptr));
            },
        .give_up_seconds = 20});
  }
  StoredObject Part(const std::string& sha256, const char* owner = kUploader) {
    const std::string folder = PartsObject(owner);
    return {absl::StrCat(folder, "/", sha256), grants_.Make(folder, Use::kWrite)};
  }
  StoredObject InSet(const std::string& id, const std::string& name, Use use = Use::kRead) {
    return {absl::StrCat(SetObject(id), "/", name), grants_.Make(SetObject(id), use)};
  }
  std::span<const std::byte> Piece(size_t index) {
    const size_t begin = index * kUploadPiece;
    return std::span(large_).subspan(begin, std::min(kUploadPiece, large_.size() - begin));
  }
  std::string KeyOf(const std::string& sha256) {
    return absl::StrCat("p/data/parts/", OwnerKey(kUploader), "/", sha256);
  }
  v1::DataSet PutSet(const TestSet& set) {
    const std::unique_ptr<StoreClient> client = Client();
    for (const auto& [digest, bytes] : set.parts) {
      const absl::Status sent =
          client->Append(Part(digest), 0, std::as_bytes(std::span(bytes)), true);
      EXPECT_TRUE(sent.ok()) << sent;
    }
    v1::PutDataSetRequest request;
    request.set_manifest_sha256(set.manifest_sha256);
    const auto put = catalog_->Put(kUploader, request);
    EXPECT_TRUE(put.ok()) << put.status();
    return put.value_or(v1::DataSet());
  }
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
  DataBucket shelf_{&client_};
  ObjectFiles local_{
      ObjectFolders{.checkpoints = "/nowhere", .exports = "/nowhere", .data = "/nowhere"}};
  ObjectGrants grants_;
  StoreService service_{&local_, &grants_, &objects_};
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<DataCatalog> catalog_;
  std::vector<std::byte> large_ = std::vector<std::byte>(2 * kUploadPiece + 12345);
  std::string large_sha256_;
  const TestSet cats_ = SetOf({{"a.txt", "miau"}, {"b.txt", "tabby"}});
  const TestSet dogs_ = SetOf({{"a.txt", "wuff"}});
};

TEST_F(DataBucketObjectsTest, AnUploadThatWasCutGoesOnFromAnotherClient) {
  const StoredObject part = Part(large_sha256_);
  {
    const std::unique_ptr<StoreClient> first = Client();
    EXPECT_TRUE(*first->IsDirect(part));
    EXPECT_TRUE(absl::IsNotFound(first->Find(part).status()));
    for (const size_t piece : {0, 1}) {
      const absl::Status sent =
          first->Append(part, static_cast<int64_t>(piece * kUploadPiece), Piece(piece), false);
      ASSERT_TRUE(sent.ok()) << sent;
    }
  }
  const std::unique_ptr<StoreClient> second = Client();
  const auto found = second->Find(part);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_FALSE(found->complete);
  EXPECT_EQ(found->committed, std::ssize(large_) - 12345);
  ASSERT_EQ(found->uploaded.size(), 2u);
  // It goes on behind the first part: the second one is replaced.
  ASSERT_TRUE(second->Append(part, kUploadPiece, Piece(1), false).ok());
  const absl::Status last = second->Append(part, 2 * kUploadPiece, Piece(2), true);
  ASSERT_TRUE(last.ok()) << last;
  EXPECT_EQ(second->Find(part)->committed, std::ssize(large_));
  EXPECT_TRUE(second->Find(part)->complete);
  EXPECT_EQ(Sha256Hex(bucket_.objects().at(KeyOf(large_sha256_))), large_sha256_);
  EXPECT_EQ(bucket_.uploads(), 0u);
}

TEST_F(DataBucketObjectsTest, OfTwoThatSendTheSamePartOneCompletesItAndTheOtherIsTold) {
  const StoredObject part = Part(large_sha256_);
  const std::unique_ptr<StoreClient> one = Client(), two = Client();
  ASSERT_TRUE(one->Append(part, 0, Piece(0), false).ok());
  ASSERT_TRUE(two->Append(part, 0, Piece(0), false).ok());
  for (const size_t piece : {1, 2}) {
    ASSERT_TRUE(
        one->Append(part, static_cast<int64_t>(piece * kUploadPiece), Piece(piece), piece == 2)
            .ok());
  }
  EXPECT_EQ(bucket_.uploads(), 0u) << "the other one's goes too";
  EXPECT_THAT(two->Append(part, kUploadPiece, Piece(1), false),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("its upload is gone")));
  EXPECT_TRUE(two->Find(part)->complete);
}

TEST_F(DataBucketObjectsTest, FaultsOfTheServerChangeNoByte) {
  nth_ = 3;
  for (int round = 0; round < 4; ++round) {
    const StoredObject part = Part(large_sha256_);
    const std::unique_ptr<StoreClient> client = Client();
    for (size_t piece = 0; piece < 3; ++piece) {
      const absl::Status sent = client->Append(part, static_cast<int64_t>(piece * kUploadPiece),
                                               Piece(piece), piece == 2);
      ASSERT_TRUE(sent.ok()) << sent;
    }
    const v1::DataSet set = PutSet(SetOf({{"round", absl::StrCat(round)}}));
    std::vector<std::byte> read(1);
    const absl::Status fetched =
        client->Read(InSet(set.id(), Sha256Hex(absl::StrCat(round))), 0, read);
    ASSERT_TRUE(fetched.ok()) << fetched;
    EXPECT_EQ(read[0], static_cast<std::byte>('0' + round));
  }
  EXPECT_EQ(Sha256Hex(bucket_.objects().at(KeyOf(large_sha256_))), large_sha256_);
}

TEST_F(DataBucketObjectsTest, AGrantOpensItsSetAndNoMore) {
  const v1::DataSet cats = PutSet(cats_), dogs = PutSet(dogs_);
  const std::unique_ptr<StoreClient> client = Client();
  const std::string miau = Sha256Hex("miau"), wuff = Sha256Hex("wuff");
  EXPECT_EQ(client->Find(InSet(cats.id(), miau))->committed, 4);
  EXPECT_TRUE(client->Find(InSet(cats.id(), "manifest"))->complete);
  std::vector<std::byte> target(4);
  EXPECT_TRUE(client->Read(InSet(cats.id(), miau), 0, target).ok());
  EXPECT_EQ(target[0], static_cast<std::byte>('m'));
  EXPECT_TRUE(absl::IsNotFound(client->Find(InSet(cats.id(), wuff)).status()));
  EXPECT_TRUE(absl::IsNotFound(client->Read(InSet(cats.id(), wuff), 0, target)));
  StoredObject stolen = InSet(dogs.id(), wuff);
  stolen.grant = InSet(cats.id(), wuff).grant;
  EXPECT_TRUE(absl::IsPermissionDenied(client->Read(stolen, 0, target)));
  EXPECT_TRUE(absl::IsPermissionDenied(
      client->Append(InSet(cats.id(), miau, Use::kWrite), 0, Piece(2), true)));
  EXPECT_TRUE(absl::IsInvalidArgument(client->Find(Part("no-digest")).status()));
  EXPECT_EQ(bucket_.objects().at(KeyOf(miau)), "miau");
}

TEST_F(DataBucketObjectsTest, NobodyRemovesAPart) {
  EXPECT_THAT(Client()->Remove(Part(large_sha256_)),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("data remove")));
}

// Symptom: AWS tells the time when an upload began, so a sweep took a part of a long upload as soon as
// it was complete.
TEST_F(DataBucketObjectsTest, APartOfALongUploadStaysAsIfItWereNew) {
  const std::unique_ptr<StoreClient> client = Client();
  bucket_.SetTime(absl::Now() - absl::Hours(25));
  for (const size_t piece : {0, 1, 2}) {
    if (piece == 2) bucket_.SetTime(absl::Now());
    const absl::Status sent = client->Append(
        Part(large_sha256_), static_cast<int64_t>(piece * kUploadPiece), Piece(piece), piece == 2);
    ASSERT_TRUE(sent.ok()) << sent;
  }
  catalog_->Sweep([](const std::string&) { return false; });
  EXPECT_TRUE(client->Find(Part(large_sha256_)).ok());
}

}  // namespace
}  // namespace stagecoach
