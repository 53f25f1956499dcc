// Jobs whose paths are in a bucket: an S3 server in this process, the coordinator's part that links a
// data set to its objects, and a reader without credentials.
#include "services/coordinator/data/linked_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/status_is.h"
#include "base/testing/temporary_folder.h"
#include "plan/data/data_sets_of.h"
#include "plan/data/image_folder.h"
#include "plan/data/text.h"
#include "plan/job/data_kinds.h"
#include "services/common/grpc/grpc_channel.h"
#include "services/common/grpc/grpc_server.h"
#include "services/common/s3/fake_s3_testing.h"
#include "services/common/store/store_client.h"
#include "services/common/tls/tls_identity.h"
#include "services/coordinator/data/changed_objects.h"
#include "services/coordinator/data/data_resolution.h"
#include "services/coordinator/data/linked_objects.h"
#include "services/coordinator/store/store_service.h"

namespace stagecoach {
namespace {

using absl::StatusCode;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const JobCaller kLinker{"user/alice", true};

class LinkedSetTest : public ::testing::Test {
 protected:
  LinkedSetTest() {
    GrpcServerOptions options;
    options.listen = "127.0.0.1:0";
    server_ = std::make_unique<GrpcServer>(
        options, std::vector<GrpcServer::NamedService>{{"stagecoach.v1.StoreService", &service_}},
        nullptr);
    EXPECT_TRUE(server_->Start().ok());
    reader_ = std::make_unique<StoreClient>(StoreClient::Options{
        .dial =
            [this] {
              return MakeControlChannel(absl::StrCat("127.0.0.1:", server_->port()),
                                        ChannelCredentialsOf(nullptr));
            },
        .give_up_seconds = 20});
  }
  ~LinkedSetTest() override {
    reader_->Shutdown();
    server_->Shutdown(0);
  }

  std::unique_ptr<DataBuckets> Buckets(const std::vector<std::string>& prefixes,
                                       const std::string& key = FakeS3::kAccessKey) {
    return DataBuckets::Open({.prefixes = prefixes,
                              .endpoint = s3_.endpoint(),
                              .environment = [key](const std::string& name) -> std::string {
                                if (name == "AWS_ACCESS_KEY_ID") return key;
                                return name == "AWS_SECRET_ACCESS_KEY" ? "s" : "";
                              }})
        .value();
  }
  static JobSpec TextJob(const std::string& path, const std::string& tokenizer = "") {
    JobSpec job;
    job.data = TextData{.path = path, .tokenizer = tokenizer};
    return job;
  }
  static JobSpec PicturesJob(const std::string& train) {
    JobSpec job;
    job.data = ImageFolderData{.train = train};
    return job;
  }
  absl::StatusOr<ResolvedJob> Resolve(const JobSpec& job, DataBuckets* buckets = nullptr) {
    return ResolveDataPaths(catalog_.get(), buckets == nullptr ? buckets_.get() : buckets, kLinker,
                            job);
  }
  std::string IdOf(const absl::StatusOr<ResolvedJob>& job) {
    EXPECT_TRUE(job.ok()) << job.status();
    const std::vector<std::string> sets = DataSetsOf(job->spec);
    return sets.size() == 1 ? sets[0] : "";
  }
  std::vector<std::string> FilesOf(const std::string& id) {
    std::vector<std::string> files;
    const CheckedManifest manifest = catalog_->Manifest(id).value();
    for (const v1::DataSetFile& file : manifest.manifest().files()) {
      files.push_back(file.path());
    }
    return files;
  }
  // As a stage reads a file of the set.
  absl::StatusOr<std::string> Read(const std::string& id, const std::string& path) {
    const CheckedManifest manifest = catalog_->Manifest(id).value();
    const v1::DataSetFile& file = *manifest.Find(path);
    const v1::DataPart& part = manifest.manifest().parts(static_cast<int>(file.part()));
    const StoredObject object = Object(id, part.sha256());
    const absl::StatusOr<StoreClient::Size> size = reader_->Find(object);
    if (!size.ok()) return size.status();
    EXPECT_EQ(size->committed, file.bytes());
    EXPECT_TRUE(size->complete);
    std::string bytes(static_cast<size_t>(file.bytes()), '\0');
    const absl::Status read = reader_->Read(object, 0, std::as_writable_bytes(std::span(bytes)));
    return read.ok() ? absl::StatusOr<std::string>(bytes) : read;
  }
  StoredObject Object(const std::string& id, const std::string& part) {
    return {absl::StrCat(SetObject(id), "/", part),
            grants_.Make(SetObject(id), ObjectGrants::Use::kRead)};
  }
  // Every so manieth request fails, in turn in every way.
  FakeS3::Fault Next() {
    const int number = ++asked_;
    if (nth_ == 0 || number % nth_ != 0) return FakeS3::Fault::kNone;
    return static_cast<FakeS3::Fault>(1 + (number / nth_) % 6);
  }

  std::atomic<int> nth_{0}, asked_{0};
  FakeS3 s3_{[this](const FakeS3::Request&) { return Next(); }};
  const TemporaryFolder folder_;
  const std::unique_ptr<DataBuckets> buckets_ = Buckets({"s3://bucket/data,s3://bucket/more"});
  const std::unique_ptr<DataCatalog> catalog_ =
      DataCatalog::Open({.folder = folder_.File("data")}).value();
  LinkedObjects linked_{catalog_.get(), buckets_.get()};
  ObjectFiles local_{ObjectFolders{
      .checkpoints = "/nowhere", .exports = "/nowhere", .data = folder_.File("data")}};
  ObjectGrants grants_;
  StoreService service_{&local_, &grants_, nullptr, &linked_};
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<StoreClient> reader_;
};

TEST_F(LinkedSetTest, AFileComesFromTheBucketWithWhatLiesBesideIt) {
  s3_.Set("data/en/a b+c=d.txt", "some text");
  s3_.Set("data/tokenizer.json", "{}");
  s3_.Set("data/tokenizer_config.json", "{ }");
  s3_.Set("data/other", "x");
  const auto job =
      Resolve(TextJob("s3://bucket/data/en/a b+c=d.txt", "s3://bucket/data/tokenizer.json"));
  const std::string id = IdOf(job);
  EXPECT_THAT(FilesOf(id), ElementsAre("bucket/data/en/a b+c=d.txt", "bucket/data/tokenizer.json",
                                       "bucket/data/tokenizer_config.json"));
  EXPECT_EQ(DataFiles(job->spec.data)[0].path,
            absl::StrCat("store:/data/", id, "/bucket/data/en/a b+c=d.txt"));
  EXPECT_EQ(Read(id, "bucket/data/en/a b+c=d.txt").value(), "some text");
  EXPECT_EQ(Read(id, "bucket/data/tokenizer_config.json").value(), "{ }");
  EXPECT_EQ(
      IdOf(Resolve(TextJob("s3://bucket/data/en/a b+c=d.txt", "s3://bucket/data/tokenizer.json"))),
      id)
      << "the same objects are the same set";
}

TEST_F(LinkedSetTest, AFolderComesWithoutHiddenNamesAndMarksOfFolders) {
  for (const char* const key : {"data/cats/0/1.png", "data/cats/1/2.png", "data/cats/.git/x",
                                "data/cats/0/.hidden", "data/cats2/3.png"}) {
    s3_.Set(key, key);
  }
  s3_.Set("data/cats/0/", "");
  s3_.Set("data/cats/1/empty", "");
  s3_.SetPageSize(2);
  const std::string id = IdOf(Resolve(PicturesJob("s3://bucket/data/cats/")));
  EXPECT_THAT(FilesOf(id), ElementsAre("bucket/data/cats/0/1.png", "bucket/data/cats/1/2.png",
                                       "bucket/data/cats/1/empty"));
  EXPECT_EQ(Read(id, "bucket/data/cats/1/2.png").value(), "data/cats/1/2.png");
  EXPECT_THAT(buckets_->List({"bucket", "data"}, /*flat=*/false, 2).status(),
              StatusIs(StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("more than 2 objects"), HasSubstr("tar files"))));
  s3_.Set("data/cats/0//4.png", "x");
  EXPECT_THAT(
      Resolve(PicturesJob("s3://bucket/data/cats")).status(),
      StatusIs(StatusCode::kInvalidArgument, HasSubstr("cats/0//4.png: is no file's path")));
}

TEST_F(LinkedSetTest, WeightsComeAsAFileAnIndexOrAFolder) {
  for (const char* const name : {"model.safetensors.index.json", "a.safetensors", "b.safetensors",
                                 "pytorch_model.bin", "sub/c.safetensors"}) {
    s3_.Set(absl::StrCat("more/llama/", name), name);
  }
  JobSpec job;
  job.data = TextData{.path = ""};
  job.initialize.from = "s3://bucket/more/llama";
  EXPECT_EQ(FilesOf(IdOf(Resolve(job))).size(), 4u) << "without the .bin";
  job.initialize.from = "s3://bucket/more/llama/model.safetensors.index.json";
  EXPECT_EQ(FilesOf(IdOf(Resolve(job))).size(), 3u) << "the shards beside it";
  job.initialize.from = "s3://bucket/more/llama/a.safetensors";
  EXPECT_EQ(FilesOf(IdOf(Resolve(job))).size(), 1u);
}

TEST_F(LinkedSetTest, AnObjectThatWasReplacedOrRemovedIsDataLossNamingIt) {
  for (const bool knows_if_match : {true, false}) {
    if (!knows_if_match) s3_.IgnoreConditions();
    s3_.Set("data/a.txt", "some text");
    s3_.Set("data/b.txt", "more text");
    const std::string a = IdOf(Resolve(TextJob("s3://bucket/data/a.txt")));
    const std::string b = IdOf(Resolve(TextJob("s3://bucket/data/b.txt")));
    s3_.Set("data/a.txt", "SOME TEXT");
    s3_.Erase("data/b.txt");
    EXPECT_THAT(Read(a, "bucket/data/a.txt").status(),
                StatusIs(StatusCode::kDataLoss,
                         AllOf(HasSubstr("s3://bucket/data/a.txt: has changed since"),
                               HasSubstr("submit the job again"), Not(HasSubstr("X-Amz")))));
    EXPECT_THAT(Read(b, "bucket/data/b.txt").status(),
                StatusIs(StatusCode::kDataLoss, HasSubstr("b.txt: is gone since")));
    const std::string anew = IdOf(Resolve(TextJob("s3://bucket/data/a.txt")));
    EXPECT_NE(anew, a);
    EXPECT_EQ(Read(anew, "bucket/data/a.txt").value(), "SOME TEXT");
  }
}

TEST_F(LinkedSetTest, ASecondSubmissionIsToldWhichObjectsChanged) {
  const auto resolve = [this](const std::string& folder) {
    return Resolve(PicturesJob("s3://bucket/data/" + folder)).value().spec;  // held no more
  };
  for (const char* const key : {"data/cats/0/1.png", "data/cats/0/2.png", "data/cats/1/3.png"}) {
    s3_.Set(key, key);
  }
  s3_.Set("data/dogs/1.png", "x");
  const JobSpec then = resolve("cats");
  EXPECT_EQ(ChangedObjects(catalog_.get(), then, resolve("cats")), "");
  EXPECT_EQ(ChangedObjects(catalog_.get(), then, resolve("dogs")), "") << "another path";
  s3_.Set("data/cats/0/1.png", "other content");
  s3_.Erase("data/cats/0/2.png");
  s3_.Set("data/cats/1/4.png", "x");
  const JobSpec now = resolve("cats");
  EXPECT_THAT(ChangedObjects(catalog_.get(), then, now),
              testing::MatchesRegex("s3://bucket/data/cats/0/1.png: ETag \".+\" of 17 bytes then, "
                                    "ETag \".+\" of 13 bytes now; "
                                    "s3://bucket/data/cats/0/2.png: ETag .+ then, nothing now; "
                                    "s3://bucket/data/cats/1/4.png: nothing then, ETag .+ now"));
  s3_.Set("data/cats/1/5.png", "x");
  EXPECT_THAT(ChangedObjects(catalog_.get(), then, resolve("cats")), testing::EndsWith("; 1 more"));
  const std::string id = DataSetsOf(then).at(0);
  ASSERT_TRUE(catalog_->TakeOut(kLinker, id).ok());
  ASSERT_TRUE(catalog_->Delete(id).ok());
  EXPECT_THAT(ChangedObjects(catalog_.get(), then, now),
              AllOf(HasSubstr("not known any more"), HasSubstr(id)));
}

TEST_F(LinkedSetTest, FaultsOfTheServerChangeNoByte) {
  nth_ = 3;
  for (int round = 0; round < 12; ++round) {
    const std::string key = absl::StrCat("data/", round), text(20'000'000, char('a' + round));
    s3_.Set(key, text);
    const std::string id = IdOf(Resolve(TextJob(absl::StrCat("s3://bucket/", key))));
    EXPECT_TRUE(Read(id, absl::StrCat("bucket/", key)).value() == text);
  }
}

TEST_F(LinkedSetTest, WhatIsNotThereOrMayNotBeReadNamesFieldAndRemedy) {
  s3_.Set("data/cats/1.png", "x");
  s3_.Set("secret/a.txt", "x");
  s3_.Set("database", "x");
  const auto refused = [&](const JobSpec& job, StatusCode code, const char* field,
                           const std::vector<std::string>& words) {
    const absl::Status status = Resolve(job).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), testing::StartsWith(field));
    for (const std::string& word : words) {
      EXPECT_THAT(std::string(status.message()), HasSubstr(word));
    }
  };
  constexpr char kPath[] = "data.text.path = \"s3://";
  refused(TextJob("s3://bucket/data/none"), StatusCode::kInvalidArgument, kPath,
          {"no such object"});
  refused(TextJob("s3://bucket/data/cats"), StatusCode::kInvalidArgument, kPath, {"name the file"});
  refused(PicturesJob("s3://bucket/data/cats/1.png"), StatusCode::kInvalidArgument,
          "data.image_folder.train = \"s3://", {"name its folder"});
  refused(PicturesJob("s3://bucket/data/dogs"), StatusCode::kInvalidArgument,
          "data.image_folder.train = \"s3://", {"no object below this folder"});
  for (const char* const path : {"s3://bucket/secret/a.txt", "s3://bucket/database", "s3://bucket",
                                 "s3://elsewhere/data/a.txt"}) {
    refused(TextJob(path), StatusCode::kPermissionDenied, kPath,
            {"--data-buckets=s3://bucket/data,s3://bucket/more", "have its operator add"});
  }
  refused(TextJob("s3://bucket/data/../secret/a.txt"), StatusCode::kInvalidArgument, kPath,
          {"want s3://BUCKET/KEY"});
  EXPECT_THAT(Resolve(TextJob("s3://bucket/data/x"), Buckets({}).get()).status(),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("--data-buckets=s3://BUCKET")));
  EXPECT_THAT(
      Resolve(TextJob("s3://nowhere/data/x"), Buckets({"s3://nowhere"}).get()).status(),
      StatusIs(StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("--data-buckets=s3://nowhere"), HasSubstr("no such bucket"))));
  EXPECT_THAT(
      Resolve(PicturesJob("s3://bucket/data"), Buckets({"s3://bucket"}, "wrong").get()).status(),
      StatusIs(StatusCode::kPermissionDenied,
               AllOf(HasSubstr("--data-buckets=s3://bucket"), HasSubstr("credentials"))));
  s3_.Set("data/empty", "");
  s3_.Set("data/void/1.png", "");
  refused(TextJob("s3://bucket/data/empty"), StatusCode::kInvalidArgument, kPath,
          {"s3://bucket/data/empty", "has 0 bytes", "put its content there again"});
  refused(PicturesJob("s3://bucket/data/void"), StatusCode::kInvalidArgument,
          "data.image_folder.train = \"s3://", {"have 0 bytes", "name another folder"});
  EXPECT_THAT(catalog_->List(kLinker), IsEmpty());
  EXPECT_THAT(DataBuckets::Open({.prefixes = {"bucket"}}).status(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("--data-buckets=bucket")));
}

TEST_F(LinkedSetTest, TheSetIsListedWithItsSourceAndGoesWithoutItsObjects) {
  s3_.Set("data/cats/0/1.png", "x");
  s3_.Set("data/cats/1/2.png", "y");
  const std::string id = IdOf(Resolve(PicturesJob("s3://bucket/data/cats")));
  EXPECT_TRUE(catalog_->IsLinked(id));
  const std::vector<v1::DataSet> sets = catalog_->List(kLinker);
  ASSERT_EQ(sets.size(), 1u);
  EXPECT_EQ(sets[0].source(), "s3://bucket/data/cats");
  EXPECT_EQ(sets[0].bytes(), 2);
  EXPECT_TRUE(DataCatalog::Open({.folder = folder_.File("data")}).value()->IsLinked(id))
      << "after a restart";
  ASSERT_TRUE(catalog_->TakeOut(kLinker, id).ok());
  ASSERT_TRUE(catalog_->Delete(id).ok());
  EXPECT_FALSE(catalog_->IsLinked(id));
  EXPECT_EQ(s3_.objects().size(), 2u);
}

// The coordinator's credentials read objects that the caller may not: only what it has resolved
// itself becomes a linked set.
TEST_F(LinkedSetTest, ACallerMakesNoLinkedSet) {
  v1::DataManifest manifest;
  v1::DataPart& part = *manifest.add_parts();
  part.set_source("s3://bucket/secret/a.txt");
  part.set_etag("1");
  part.set_sha256(Sha256Hex("s3://bucket/secret/a.txt\n1\n"));
  part.set_bytes(1);
  v1::DataSetFile& file = *manifest.add_files();
  file.set_path("a.txt");
  file.set_bytes(1);
  const std::string bytes = manifest.SerializeAsString();
  v1::PutDataSetRequest request;
  request.set_manifest_sha256(Sha256Hex(bytes));
  ASSERT_TRUE(catalog_->Prepare(kLinker.name, {}).ok());
  folder_.Write(absl::StrCat("data/parts/", OwnerKey(kLinker.name), "/", Sha256Hex(bytes)), bytes);
  EXPECT_THAT(catalog_->Put(kLinker.name, request).status(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("only the coordinator makes")));

  s3_.Set("data/a.txt", "x");
  const std::string id = IdOf(Resolve(TextJob("s3://bucket/data/a.txt")));
  EXPECT_THAT(reader_->Find(Object(id, part.sha256())).status(),
              StatusIs(StatusCode::kNotFound, HasSubstr("no such part")));
  const std::unique_ptr<DataBuckets> others = Buckets({"s3://bucket/more"});
  LinkedObjects later(catalog_.get(), others.get());  // the operator has taken the prefix away
  v1::LocateObjectRequest locate;
  v1::LocateObjectResponse response;
  locate.set_use(v1::OBJECT_USE_READ);
  locate.set_name(Object(id, catalog_->Manifest(id)->manifest().parts(0).sha256()).name);
  EXPECT_TRUE(absl::IsPermissionDenied(later.Locate(locate, 60, &response)));
  locate.set_use(v1::OBJECT_USE_WRITE);
  EXPECT_TRUE(absl::IsPermissionDenied(linked_.Locate(locate, 60, &response)));
  EXPECT_EQ(response.urls_size(), 0);
}

}  // namespace
}  // namespace stagecoach
