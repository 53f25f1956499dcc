// Data sets in a bucket: a catalog over a server that fails on command.
#include "services/coordinator/data/data_bucket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/testing/manual_clock.h"
#include "base/testing/status_is.h"
#include "services/common/s3/fake_s3_testing.h"
#include "services/coordinator/data/data_catalog.h"
#include "services/coordinator/data/data_set_testing.h"
#include "services/coordinator/store/object_names.h"

namespace stagecoach {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using S3Fault = FakeS3::Fault;

constexpr int64_t kHourNanos = int64_t{3600} * 1'000'000'000;
const JobCaller kCara{"user/cara", true};
const JobCaller kDan{"user/dan", true};

class DataBucketTest : public ::testing::Test {
 protected:
  DataBucketTest() {
    Advance(SystemClock::Get()->UnixNanos());
    Restart();
  }
  void Advance(int64_t nanos) {
    clock_.AdvanceNanos(nanos);
    bucket_.SetTime(absl::FromUnixNanos(clock_.UnixNanos()));
  }
  // A new coordinator on the same bucket.
  void Restart() {
    catalog_.reset();
    shelf_ = std::make_unique<DataBucket>(&client_, &clock_);
    DataCatalog::Options options;
    options.shelf = shelf_.get();
    options.clock = &clock_;
    absl::StatusOr<std::unique_ptr<DataCatalog>> opened = DataCatalog::Open(options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    catalog_ = *std::move(opened);
  }
  static std::string KeyOf(const JobCaller& owner, const std::string& digest) {
    return absl::StrCat("p/data/parts/", OwnerKey(owner.name), "/", digest);
  }
  void Upload(const JobCaller& owner, const TestSet& set) {
    for (const auto& [digest, bytes] : set.parts) bucket_.Set(KeyOf(owner, digest), bytes);
  }
  absl::StatusOr<v1::DataSet> Put(const JobCaller& owner, const TestSet& set,
                                  const std::string& name = "") {
    v1::PutDataSetRequest request;
    request.set_manifest_sha256(set.manifest_sha256);
    request.set_name(name);
    request.set_replace(true);
    return catalog_->Put(owner.name, request);
  }
  v1::DataSet Uploaded(const JobCaller& owner, const TestSet& set, const std::string& name = "") {
    Upload(owner, set);
    const absl::StatusOr<v1::DataSet> put = Put(owner, set, name);
    EXPECT_TRUE(put.ok()) << put.status();
    return put.value_or(v1::DataSet());
  }
  absl::Status Remove(const JobCaller& caller, const std::string& name) {
    const auto out = catalog_->TakeOut(caller, name);
    return out.ok() ? catalog_->Delete(out->id()) : out.status();
  }
  void Sweep() {
    catalog_->Sweep([](const std::string&) { return false; });
  }
  bool Has(const std::string& key) { return bucket_.objects().contains(key); }
  size_t Count(const std::string& prefix) {
    size_t count = 0;
    for (const auto& [key, bytes] : bucket_.objects()) count += absl::StartsWith(key, prefix);
    return count;
  }
  S3Fault Next(const FakeS3::Request&) {
    const int left = --until_fault_;
    return left == 0 || (left < 0 && stays_) ? fault_.load() : S3Fault::kNone;
  }
  // The nth request from now on, and if it stays those behind it.
  void Fail(int nth, S3Fault fault, bool stays) {
    fault_ = fault;
    stays_ = stays;
    until_fault_ = nth;
  }
  void ClearFault() { until_fault_ = 1 << 30; }

  std::atomic<S3Fault> fault_{S3Fault::kNone};
  std::atomic<bool> stays_{false};
  std::atomic<int> until_fault_{1 << 30};
  FakeS3 bucket_{[this](const FakeS3::Request& request) { return Next(request); }};
  HttpTransfer transfer_;
  S3CredentialSource credentials_{&transfer_, SystemClock::Get(), [](const std::string& name) {
                                    if (name == "AWS_ACCESS_KEY_ID") return FakeS3::kAccessKey;
                                    return name == "AWS_SECRET_ACCESS_KEY" ? "s" : "";
                                  }};
  S3Client client_{{.location = *ParseS3Location("s3://bucket/p", bucket_.endpoint(), ""),
                    .give_up_seconds = 0.02,
                    .first_pause_seconds = 0.001},
                   &transfer_,
                   &credentials_};
  ManualClock clock_;
  std::unique_ptr<DataBucket> shelf_;
  std::unique_ptr<DataCatalog> catalog_;
  const TestSet cats_ = SetOf({{"a/1.png", "miau"}, {"a/empty", ""}, {"b.txt", "tabby"}});
  const TestSet dogs_ = SetOf({{"1.png", "wuff"}, {"b.txt", "tabby"}});
  const std::string tabby_ = Sha256Hex("tabby"), miau_ = Sha256Hex("miau");
};

TEST_F(DataBucketTest, ASetIsThereAfterARestartToo) {
  EXPECT_THAT(*catalog_->Prepare(kCara.name, cats_.Listed()), ElementsAre(0, 1, 2));
  const v1::DataSet put = Uploaded(kCara, cats_, "cats");
  EXPECT_THAT(*catalog_->Prepare(kCara.name, cats_.Listed()), IsEmpty());
  for (int round = 0; round < 2; ++round) {
    const auto found = catalog_->Find(kCara, "cats");
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->id(), put.id());
    EXPECT_EQ(found->files(), 3);
    EXPECT_EQ(catalog_->Manifest(put.id())->manifest().parts_size(), 2);
    Restart();
  }
  EXPECT_TRUE(absl::IsNotFound(catalog_->Find(kDan, put.id()).status()));
}

TEST_F(DataBucketTest, ManyPartsAreLookedForByOneListing) {
  std::map<std::string, std::string> files;
  for (int i = 0; i < 100; ++i) files[absl::StrCat("f", i)] = absl::StrCat("text ", i);
  const TestSet set = SetOf(files);
  EXPECT_EQ(catalog_->Prepare(kCara.name, set.Listed())->size(), 101u);
  Upload(kCara, set);
  bucket_.Erase(KeyOf(kCara, Sha256Hex("text 7")));
  const int before = bucket_.requests();
  EXPECT_EQ(catalog_->Prepare(kCara.name, set.Listed())->size(), 1u);
  EXPECT_EQ(bucket_.requests(), before + 1);
  EXPECT_THAT(Put(kCara, set).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(Sha256Hex("text 7"))));
}

TEST_F(DataBucketTest, PartsThatAreNotWhatTheManifestSaysMakeNoSet) {
  Upload(kCara, cats_);
  bucket_.Set(KeyOf(kCara, tabby_), "short");
  bucket_.Set(KeyOf(kCara, miau_), "longer");
  EXPECT_TRUE(absl::IsInvalidArgument(Put(kCara, cats_).status()));
  bucket_.Set(KeyOf(kCara, cats_.manifest_sha256), dogs_.parts.at(dogs_.manifest_sha256));
  EXPECT_THAT(Put(kCara, cats_).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("manifest_sha256")));
  EXPECT_EQ(Count("p/data/sets/"), 0u);
}

// There are no links: what a grant for a set opens is decided here.
TEST_F(DataBucketTest, ASetOpensItsOwnPartsAndNoOthers) {
  const v1::DataSet cats = Uploaded(kCara, cats_), dogs = Uploaded(kCara, dogs_);
  const v1::DataSet bobs = Uploaded(kDan, dogs_);
  const std::string wuff = Sha256Hex("wuff");
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(*shelf_->KeyInSet(cats.id(), miau_), KeyOf(kCara, miau_));
    EXPECT_EQ(*shelf_->KeyInSet(bobs.id(), wuff), KeyOf(kDan, wuff));
    EXPECT_EQ(*shelf_->KeyInSet(cats.id(), "manifest"),
              absl::StrCat("p/data/sets/", cats.id(), "/manifest"));
    EXPECT_TRUE(absl::IsNotFound(shelf_->KeyInSet(cats.id(), wuff).status()));
    EXPECT_TRUE(absl::IsNotFound(shelf_->KeyInSet(bobs.id(), miau_).status()));
    EXPECT_TRUE(absl::IsNotFound(shelf_->KeyInSet(cats.id(), dogs_.manifest_sha256).status()));
    Restart();
  }
  ASSERT_TRUE(Remove(kCara, cats.id()).ok());
  EXPECT_TRUE(absl::IsNotFound(shelf_->KeyInSet(cats.id(), miau_).status()));
  EXPECT_TRUE(absl::IsNotFound(shelf_->KeyInSet(cats.id(), "manifest").status()));
  EXPECT_TRUE(shelf_->KeyInSet(dogs.id(), wuff).ok());
}

TEST_F(DataBucketTest, ARemovalLeavesThePartsOfOtherSets) {
  const v1::DataSet cats = Uploaded(kCara, cats_, "cats");
  Uploaded(kCara, dogs_, "dogs");
  Uploaded(kDan, cats_);
  Restart();
  ASSERT_TRUE(Remove(kCara, "cats").ok());
  EXPECT_FALSE(Has(KeyOf(kCara, miau_)));
  EXPECT_TRUE(Has(KeyOf(kCara, tabby_)));
  EXPECT_TRUE(Has(KeyOf(kDan, miau_)));
  EXPECT_EQ(Count(absl::StrCat("p/data/sets/", cats.id(), "/")), 0u);
  Restart();
  EXPECT_TRUE(absl::IsNotFound(catalog_->Find(kCara, "cats").status()));
  EXPECT_TRUE(catalog_->Find(kCara, "dogs").ok());
}

TEST_F(DataBucketTest, ASweepTakesOldPartsOfNoSet) {
  Uploaded(kCara, cats_, "cats");
  bucket_.Set(KeyOf(kCara, Sha256Hex("lone")), "lone");
  bucket_.Set(KeyOf(kCara, Sha256Hex("told")), "told");
  const std::string half = absl::StrCat("p/data/sets/", Sha256Hex("half"), "/manifest");
  bucket_.Set(half, cats_.parts.at(cats_.manifest_sha256));
  Advance(25 * kHourNanos);
  bucket_.Set(KeyOf(kDan, Sha256Hex("new")), "new");
  v1::DataPart told;
  told.set_sha256(Sha256Hex("told"));
  told.set_bytes(4);
  EXPECT_THAT(*catalog_->Prepare(kCara.name, {told}), IsEmpty());
  Sweep();
  EXPECT_FALSE(Has(KeyOf(kCara, Sha256Hex("lone"))));
  EXPECT_FALSE(Has(half)) << "its info was never written";
  EXPECT_TRUE(Has(KeyOf(kCara, Sha256Hex("told")))) << "a client was told that it is here";
  EXPECT_TRUE(Has(KeyOf(kDan, Sha256Hex("new"))));
  for (const auto& [digest, bytes] : cats_.parts) EXPECT_TRUE(Has(KeyOf(kCara, digest)));
  Advance(25 * kHourNanos);
  Sweep();
  EXPECT_EQ(Count("p/data/parts/"), 3u) << "those of the set";
  // A set without a name goes after its days, with its parts.
  Uploaded(kDan, dogs_);
  Advance(31 * 24 * kHourNanos);
  Sweep();
  EXPECT_EQ(Count(KeyOf(kDan, "")), 0u);
  EXPECT_TRUE(catalog_->Find(kCara, "cats").ok());
}

// Symptom: a removal's answer was lost, its owner put the set again, and a sweep took what was there.
TEST_F(DataBucketTest, ASetThatIsPutAgainAfterAFailedRemovalIsWhole) {
  const v1::DataSet cats = Uploaded(kCara, cats_, "cats");
  Fail(1, S3Fault::kCutAfter, /*stays=*/true);
  EXPECT_FALSE(Remove(kCara, "cats").ok());
  ClearFault();
  ASSERT_TRUE(Put(kCara, cats_, "cats").ok());
  Advance(25 * kHourNanos);
  Sweep();
  Restart();
  EXPECT_TRUE(catalog_->Find(kCara, "cats").ok());
  for (const auto& [digest, bytes] : cats_.parts) EXPECT_TRUE(Has(KeyOf(kCara, digest)));
}

TEST_F(DataBucketTest, APutMakesALostManifestAnew) {
  const v1::DataSet cats = Uploaded(kCara, cats_);
  const std::string manifest = absl::StrCat("p/data/sets/", cats.id(), "/manifest");
  bucket_.Erase(manifest);
  ASSERT_TRUE(Put(kCara, cats_).ok());
  EXPECT_TRUE(Has(manifest));
}

// Where the upload is cut, running jobs and other sets still read what is there.
TEST_F(DataBucketTest, PartsThatAreToComeAgainStayUntilThen) {
  Uploaded(kCara, cats_, "cats");
  std::vector<v1::DataPart> parts(1);
  parts[0].set_sha256(miau_);
  parts[0].set_bytes(4);
  EXPECT_THAT(*catalog_->Prepare(kCara.name, parts, /*again=*/true), ElementsAre(0));
  EXPECT_TRUE(Has(KeyOf(kCara, miau_)));
}

// A damaged manifest keeps its owner's parts, and nobody else's.
TEST_F(DataBucketTest, ASweepGoesOnBehindADamagedManifest) {
  const v1::DataSet cats = Uploaded(kCara, cats_);
  bucket_.Set(absl::StrCat("p/data/sets/", cats.id(), "/manifest"), "?");
  bucket_.Set(KeyOf(kCara, Sha256Hex("lone")), "lone");
  bucket_.Set(KeyOf(kDan, Sha256Hex("lone")), "lone");
  Restart();
  Advance(25 * kHourNanos);
  Sweep();
  EXPECT_TRUE(Has(KeyOf(kCara, Sha256Hex("lone"))));
  EXPECT_FALSE(Has(KeyOf(kDan, Sha256Hex("lone"))));
}

TEST_F(DataBucketTest, ASweepEndsUploadsThatNobodyGoesOnWith) {
  const std::string key = KeyOf(kCara, Sha256Hex("large"));
  ASSERT_TRUE(client_.BeginParts(key).ok());
  ASSERT_TRUE(client_.BeginParts("p/checkpoints/job/.tmp-1-2-3/layer").ok());
  Advance(6 * 24 * kHourNanos);
  Sweep();
  EXPECT_EQ(bucket_.uploads(), 2u);
  Advance(2 * 24 * kHourNanos);
  Sweep();
  EXPECT_EQ(bucket_.uploads(), 1u) << "a checkpoint's is not the sweep's";
}

// A damaged set is not shown, but it may be mended: nothing of it goes.
TEST_F(DataBucketTest, TheInfoOfASetThatIsDamagedKeepsItsParts) {
  const v1::DataSet cats = Uploaded(kCara, cats_);
  bucket_.Set(absl::StrCat("p/data/sets/", cats.id(), "/info"), "{");
  Restart();
  EXPECT_THAT(catalog_->List(kCara), IsEmpty());
  Advance(48 * kHourNanos);
  Sweep();
  EXPECT_TRUE(Has(KeyOf(kCara, miau_)));
  EXPECT_TRUE(absl::IsNotFound(shelf_->KeyInSet(cats.id(), miau_).status()));
  ASSERT_TRUE(Put(kCara, cats_).ok());
  EXPECT_EQ(catalog_->List(kCara).size(), 1u);
}

TEST_F(DataBucketTest, APartThatTheCoordinatorMadeIsOneOfTheOwners) {
  const std::string manifest = cats_.parts.at(cats_.manifest_sha256);
  Upload(kCara, cats_);
  bucket_.Erase(KeyOf(kCara, cats_.manifest_sha256));
  ASSERT_TRUE(shelf_->WritePart(OwnerKey(kCara.name), cats_.manifest_sha256, manifest).ok());
  EXPECT_TRUE(Put(kCara, cats_).ok());
}

// Wherever the server or the process stops: a set is there whole, with its name or without, or not at
// all; and the call that failed is done by repeating it.
TEST_F(DataBucketTest, ACallThatFailsAnywhereLeavesWholeSets) {
  const auto check = [this](const char* what) {
    for (const v1::DataSet& set : catalog_->List(kCara)) {
      const auto manifest = catalog_->Manifest(set.id());
      ASSERT_TRUE(manifest.ok()) << what << ": " << manifest.status();
      for (const v1::DataPart& part : manifest->manifest().parts()) {
        const auto key = shelf_->KeyInSet(set.id(), part.sha256());
        ASSERT_TRUE(key.ok()) << what << ": " << key.status();
        EXPECT_EQ(Sha256Hex(bucket_.objects().at(*key)), part.sha256()) << what;
      }
    }
  };
  int failed = 0;
  for (const S3Fault fault : {S3Fault::kError, S3Fault::kCutBefore, S3Fault::kCutAfter}) {
    for (const bool stays : {false, true}) {
      for (int nth = 1; nth <= 25; ++nth) {
        SCOPED_TRACE(
            absl::StrCat("fault ", static_cast<int>(fault), ", request ", nth, ", ", stays));
        Uploaded(kCara, cats_, "pets");
        Upload(kCara, dogs_);
        Fail(nth, fault, stays);
        const absl::Status put = Put(kCara, dogs_, "pets").status();
        const absl::Status removed = put.ok() ? Remove(kCara, "pets") : put;
        ClearFault();
        failed += removed.ok() ? 0 : 1;
        check("the same process");
        Restart();
        check("the next one");
        Upload(kCara, dogs_);
        ASSERT_TRUE(Put(kCara, dogs_, "pets").ok());
        ASSERT_TRUE(Remove(kCara, "pets").ok());
        check("repeated");
      }
    }
  }
  EXPECT_GT(failed, 20);
}

}  // namespace
}  // namespace stagecoach
