#include "services/coordinator/data/data_catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/hash.h"
#include "base/testing/file_text.h"
#include "base/testing/manual_clock.h"
#include "base/testing/status_is.h"
#include "base/testing/temporary_folder.h"
#include "services/coordinator/data/data_set_testing.h"
#include "services/coordinator/store/object_names.h"

namespace stagecoach {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kDay = int64_t{86400} * 1'000'000'000;
const JobCaller kAlice{"user/alice", true};
const JobCaller kBob{"user/bob", true};
const JobCaller kEve{"operator/eve", false};

v1::PutDataSetRequest PutOf(const TestSet& set, const std::string& name = "",
                            bool replace = false) {
  v1::PutDataSetRequest request;
  request.set_manifest_sha256(set.manifest_sha256);
  request.set_name(name);
  request.set_replace(replace);
  return request;
}

class DataCatalogTest : public ::testing::Test {
 protected:
  DataCatalogTest() {
    // Files have the system's time.
    clock_.AdvanceNanos(SystemClock::Get()->UnixNanos());
    Reopen();
  }
  void Reopen() {
    catalog_.reset();
    DataCatalog::Options options;
    options.folder = folder_.File("data");
    options.clock = &clock_;
    options.reserve_bytes = reserve_bytes_;
    absl::StatusOr<std::unique_ptr<DataCatalog>> opened = DataCatalog::Open(options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    catalog_ = *std::move(opened);
  }
  void Upload(const std::string& owner, const TestSet& set) {
    const auto missing = catalog_->Prepare(owner, set.Listed());
    ASSERT_TRUE(missing.ok()) << missing.status();
    for (const auto& [digest, bytes] : set.parts) folder_.Write(PartFile(owner, digest), bytes);
  }
  absl::StatusOr<v1::DataSet> Put(const JobCaller& owner, const TestSet& set,
                                  const std::string& name = "", bool replace = false) {
    Upload(owner.name, set);
    return catalog_->Put(owner.name, PutOf(set, name, replace));
  }
  std::string PartFile(const std::string& owner, const std::string& digest) {
    return absl::StrCat("data/parts/", OwnerKey(owner), "/", digest);
  }
  bool Exists(const std::string& file) { return std::filesystem::exists(folder_.File(file)); }
  std::vector<std::string> NamesOf(const JobCaller& caller) {
    std::vector<std::string> names;
    for (const v1::DataSet& set : catalog_->List(caller)) {
      names.push_back(set.name().empty() ? set.title() : set.name());
    }
    return names;
  }
  absl::Status Remove(const JobCaller& caller, const std::string& name) {
    const auto out = catalog_->TakeOut(caller, name);
    return out.ok() ? catalog_->Delete(out->id()) : out.status();
  }
  void SweepAll() {
    catalog_->Sweep([](const std::string&) { return false; });
  }

  const TemporaryFolder folder_;
  ManualClock clock_;
  int64_t reserve_bytes_ = 0;
  std::unique_ptr<DataCatalog> catalog_;
  const TestSet cats_ = SetOf({{"a/1.png", "miau"}, {"a/empty", ""}, {"b.txt", "tabby"}});
  const TestSet dogs_ = SetOf({{"1.png", "wuff"}, {"b.txt", "tabby"}});
};

TEST_F(DataCatalogTest, ASetIsThereAfterARestartToo) {
  EXPECT_THAT(*catalog_->Prepare("user/alice", cats_.Listed()), ElementsAre(0, 1, 2));
  const auto put = Put(kAlice, cats_, "cats");
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_EQ(put->name(), "cats");
  EXPECT_EQ(put->owner(), "user/alice");
  EXPECT_EQ(put->title(), "a/1.png");
  EXPECT_EQ(put->files(), 3);
  EXPECT_EQ(put->bytes(), 9);
  EXPECT_EQ(put->created_seconds(), clock_.UnixSeconds());
  EXPECT_THAT(*catalog_->Prepare("user/alice", cats_.Listed()), IsEmpty());
  Reopen();
  const auto found = catalog_->Find(kAlice, "cats");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->SerializeAsString(), put->SerializeAsString());
  EXPECT_EQ(catalog_->Find(kAlice, put->id())->name(), "cats");
  EXPECT_NE(catalog_->Manifest(put->id())->Find("a/1.png"), nullptr);
  const auto repeated = catalog_->Put("user/alice", PutOf(cats_, "cats"));
  ASSERT_TRUE(repeated.ok()) << "repeating is harmless: " << repeated.status();
  EXPECT_EQ(repeated->id(), put->id());
}

TEST_F(DataCatalogTest, OthersSetsAreNotThere) {
  const std::string id = Put(kAlice, cats_, "cats")->id();
  for (const std::string& text : {std::string("cats"), id}) {
    const absl::Status none = catalog_->Find(kBob, text).status();
    EXPECT_THAT(none, StatusIs(absl::StatusCode::kNotFound,
                               absl::StrCat("data set ", text,
                                            " is not here; `stagecoach data list` shows what is")));
    EXPECT_EQ(catalog_->TakeOut(kBob, text).status(), none);
    EXPECT_EQ(catalog_->Hold(kBob, text).status(), none);
  }
  EXPECT_THAT(catalog_->List(kBob), IsEmpty());
  EXPECT_THAT(catalog_->List({"", true}), IsEmpty()) << "a user whose token was taken out";
  // Of a digest that Bob learned nothing is his.
  EXPECT_EQ(catalog_->Put("user/bob", PutOf(cats_)).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(*catalog_->Prepare("user/bob", cats_.Listed()), ElementsAre(0, 1, 2));
  const auto own = Put(kBob, cats_, "cats");
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_NE(own->id(), id);
  EXPECT_EQ(catalog_->Find(kAlice, "cats")->id(), id);
}

TEST_F(DataCatalogTest, AnOperatorSeesAll) {
  const std::string cats = Put(kAlice, cats_, "cats")->id();
  ASSERT_TRUE(Put(kBob, dogs_, "dogs").ok());
  EXPECT_THAT(NamesOf(kEve), ElementsAre("cats", "dogs"));
  EXPECT_EQ(catalog_->Find(kEve, "cats")->id(), cats);
  const std::string other = Put(kBob, cats_, "cats")->id();
  EXPECT_THAT(catalog_->Find(kEve, "cats").status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("give its id")));
  EXPECT_EQ(catalog_->Find(kEve, other)->owner(), "user/bob");
  const std::string own = Put(kEve, dogs_, "cats")->id();
  EXPECT_EQ(catalog_->Find(kEve, "cats")->id(), own) << "its own first";
  EXPECT_TRUE(Remove(kEve, cats).ok());
  EXPECT_THAT(NamesOf(kAlice), IsEmpty());
}

TEST_F(DataCatalogTest, NobodyHasAFolderToo) {
  const JobCaller nobody{"", false};
  ASSERT_TRUE(Put(nobody, cats_, "cats").ok());
  EXPECT_TRUE(Exists(absl::StrCat("data/parts/_/", cats_.manifest_sha256)));
  EXPECT_TRUE(catalog_->Find(nobody, "cats").ok());
  EXPECT_FALSE(catalog_->Find(kAlice, "cats").ok());
}

TEST_F(DataCatalogTest, NamesAreReplacedOnlyIfAsked) {
  const std::string cats = Put(kAlice, cats_, "pets")->id();
  EXPECT_THAT(Put(kAlice, dogs_, "pets").status(),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("name=pets")));
  EXPECT_THAT(NamesOf(kAlice), ElementsAre("pets")) << "and the set was not made";
  const auto dogs = Put(kAlice, dogs_, "pets", true);
  ASSERT_TRUE(dogs.ok()) << dogs.status();
  EXPECT_THAT(NamesOf(kAlice), ElementsAre("pets", "a/1.png"));
  EXPECT_EQ(catalog_->Find(kAlice, "pets")->id(), dogs->id());
  EXPECT_EQ(catalog_->Find(kAlice, cats)->name(), "");
  // One that is there gets its name, and another one only if asked.
  EXPECT_EQ(Put(kAlice, cats_, "cats")->name(), "cats");
  EXPECT_THAT(Put(kAlice, cats_, "tigers").status(),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("data set cats has this")));
  EXPECT_EQ(Put(kAlice, cats_, "tigers", true)->name(), "tigers");
  EXPECT_EQ(Put(kAlice, cats_)->name(), "tigers") << "without a name it keeps its own";
  Reopen();
  EXPECT_THAT(NamesOf(kAlice), ElementsAre("pets", "tigers"));
}

TEST_F(DataCatalogTest, RefusesWhatDoesNotFit) {
  const auto code = [&](const v1::PutDataSetRequest& request) {
    return catalog_->Put("user/alice", request).status();
  };
  EXPECT_THAT(code(PutOf(cats_)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("is not here; upload it")));
  Upload("user/alice", cats_);
  v1::PutDataSetRequest other = PutOf(cats_);
  other.set_manifest_sha256("../../x");
  EXPECT_THAT(code(other),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("manifest_sha256=../../x")));
  for (const char* name : {"My Cats", "..", "a/b", "user%2Fbob"}) {
    EXPECT_THAT(code(PutOf(cats_, name)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("name=")));
  }
  const std::string digest = Sha256Hex("tabby");
  folder_.Write(PartFile("user/alice", digest), "tab");
  EXPECT_THAT(code(PutOf(cats_)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has 3 bytes")));
  std::filesystem::remove(folder_.File(PartFile("user/alice", digest)));
  EXPECT_THAT(code(PutOf(cats_)), StatusIs(absl::StatusCode::kFailedPrecondition,
                                           HasSubstr(absl::StrCat("part ", digest))));
  // A part that is no manifest.
  folder_.Write(PartFile("user/alice", Sha256Hex("\xff")), "\xff");
  other.set_manifest_sha256(Sha256Hex("\xff"));
  EXPECT_THAT(code(other),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("cannot be read")));
  EXPECT_THAT(catalog_->List(kEve), IsEmpty());
}

TEST_F(DataCatalogTest, AManifestThatClimbsIsNoSet) {
  v1::DataManifest manifest;
  manifest.add_files()->set_path("../../etc/passwd");
  const std::string bytes = manifest.SerializeAsString();
  TestSet climbs;
  climbs.manifest_sha256 = Sha256Hex(bytes);
  climbs.parts[climbs.manifest_sha256] = bytes;
  EXPECT_THAT(Put(kAlice, climbs).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("..")));
}

TEST_F(DataCatalogTest, PartsOfAnUploadAreChecked) {
  const auto prepare = [&](const std::string& digest, int64_t bytes) {
    v1::DataPart part;
    part.set_sha256(digest);
    part.set_bytes(bytes);
    return catalog_->Prepare("user/alice", {part}).status();
  };
  EXPECT_THAT(prepare("../x", 1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("parts[0].sha256=../x")));
  EXPECT_THAT(prepare(std::string(64, 'a'), 0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("parts[0].bytes=0")));
  EXPECT_TRUE(catalog_->Prepare("user/alice", {}).ok());
  std::vector<v1::DataPart> many(DataCatalog::kMostParts + 1);
  EXPECT_THAT(catalog_->Prepare("user/alice", many).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("4097 of them")));
  for (size_t i = 0; i < many.size(); ++i) {
    many[i].set_sha256(Sha256Hex(absl::StrCat(i)));
    many[i].set_bytes(1);
  }
  many.pop_back();
  EXPECT_EQ(catalog_->Prepare("user/alice", many)->size(), 4096u);
  folder_.Write(PartFile("user/alice", Sha256Hex("x")), "x");
  EXPECT_THAT(prepare(Sha256Hex("x"), 2),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("that is here has 1")));
}

TEST_F(DataCatalogTest, AFullDiskIsSaidBeforeTheUpload) {
  v1::DataPart part;
  part.set_sha256(std::string(64, 'a'));
  part.set_bytes(std::numeric_limits<int64_t>::max());
  EXPECT_THAT(catalog_->Prepare("user/alice", {part, part}).status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       testing::AllOf(HasSubstr("has 9223372036854775807 bytes"),
                                      HasSubstr("`stagecoach data remove`"))));
  reserve_bytes_ = std::numeric_limits<int64_t>::max();
  Reopen();
  part.set_bytes(1);
  EXPECT_EQ(catalog_->Prepare("user/alice", {part}).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(catalog_->Prepare("user/alice", {}).ok()) << "nothing is missing";
}

TEST_F(DataCatalogTest, RemovingASetFreesThePartsThatNoOtherHas) {
  ASSERT_TRUE(Put(kAlice, cats_, "cats").ok());
  const std::string dogs = Put(kAlice, dogs_, "dogs")->id();
  ASSERT_TRUE(Remove(kAlice, "cats").ok());
  EXPECT_FALSE(Exists(PartFile("user/alice", Sha256Hex("miau"))));
  EXPECT_TRUE(Exists(PartFile("user/alice", Sha256Hex("tabby")))) << "the dogs have it";
  EXPECT_EQ(FileText(folder_.File(absl::StrCat("data/sets/", dogs, "/", Sha256Hex("tabby")))),
            "tabby");
  EXPECT_THAT(NamesOf(kAlice), ElementsAre("dogs"));
  EXPECT_EQ(Remove(kAlice, "cats").code(), absl::StatusCode::kNotFound);
  Reopen();
  EXPECT_THAT(NamesOf(kAlice), ElementsAre("dogs"));
  EXPECT_TRUE(Put(kAlice, cats_, "cats").ok()) << "it may come again";
}

TEST_F(DataCatalogTest, WhatIsHeldStays) {
  const std::string id = Put(kAlice, cats_, "cats")->id();
  auto held = catalog_->Hold(kAlice, "cats");
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_THAT(catalog_->TakeOut(kAlice, "cats").status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("is being submitted")));
  held->hold.reset();
  ASSERT_TRUE(catalog_->TakeOut(kAlice, "cats").ok());
  EXPECT_EQ(catalog_->Hold(kAlice, "cats").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(catalog_->Put("user/alice", PutOf(cats_)).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_THAT(catalog_->List(kAlice), IsEmpty());
  catalog_->PutBack(id);
  EXPECT_TRUE(catalog_->Hold(kAlice, "cats").ok());
}

TEST_F(DataCatalogTest, UnusedSetsWithoutANameGo) {
  ASSERT_TRUE(Put(kAlice, cats_, "cats").ok());
  const std::string dogs = Put(kAlice, dogs_)->id();
  const std::string read = Put(kBob, dogs_)->id();
  clock_.AdvanceNanos(29 * kDay);
  SweepAll();
  EXPECT_EQ(catalog_->List(kEve).size(), 3u);
  ASSERT_TRUE(catalog_->Hold(kAlice, dogs).ok());
  Reopen();  // the use is on disk
  clock_.AdvanceNanos(2 * kDay);
  catalog_->Sweep([&](const std::string& id) { return id == read; });
  EXPECT_EQ(catalog_->List(kEve).size(), 3u) << "used two days ago, read by a job, named";
  clock_.AdvanceNanos(29 * kDay);
  catalog_->Sweep([&](const std::string& id) { return id == read; });
  EXPECT_EQ(catalog_->List(kEve).size(), 2u);
  EXPECT_EQ(catalog_->Find(kAlice, dogs).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(NamesOf(kAlice), ElementsAre("cats"));
}

TEST_F(DataCatalogTest, PartsOfNoSetGoAfterADay) {
  ASSERT_TRUE(Put(kAlice, cats_).ok());
  const std::string part = PartFile("user/alice", Sha256Hex("lost"));
  const std::string begun = PartFile("user/alice", absl::StrCat(Sha256Hex("begun"), ".part"));
  folder_.Write(part, "lost");
  folder_.Write(begun, "beg");
  SweepAll();
  EXPECT_TRUE(Exists(part) && Exists(begun));
  clock_.AdvanceNanos(2 * kDay);
  SweepAll();
  EXPECT_FALSE(Exists(part) || Exists(begun));
  EXPECT_TRUE(Exists(PartFile("user/alice", Sha256Hex("miau"))));
  EXPECT_EQ(catalog_->List(kAlice).size(), 1u);
}

// Symptom: a part that the disk had damaged stayed so, as clients were told that it is here.
TEST_F(DataCatalogTest, APartThatIsUploadedAgainIsThatOfAllSets) {
  const std::string cats = Put(kAlice, cats_, "cats")->id(), dogs = Put(kAlice, dogs_)->id();
  const std::string bobs = Put(kBob, cats_)->id();
  const std::string part = Sha256Hex("tabby");
  const auto in_set = [&](const std::string& id, const std::string& name) {
    return FileText(folder_.File(absl::StrCat("data/sets/", id, "/", name)));
  };
  folder_.Write(PartFile(kAlice.name, part), "tabbx");
  folder_.Write(PartFile(kAlice.name, cats_.manifest_sha256), "junk");
  ASSERT_EQ(in_set(dogs, part), "tabbx");
  const auto again = catalog_->Prepare(kAlice.name, cats_.Listed(), /*again=*/true);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->size(), cats_.parts.size());
  EXPECT_EQ(in_set(dogs, part), "tabbx") << "until it is here";
  Upload(kAlice.name, cats_);
  Reopen();  // a restart between the two
  ASSERT_TRUE(catalog_->Put(kAlice.name, PutOf(cats_)).ok());
  EXPECT_EQ(in_set(cats, part), "tabby");
  EXPECT_EQ(in_set(dogs, part), "tabby");
  EXPECT_EQ(in_set(bobs, part), "tabby") << "has one of its own";
  EXPECT_EQ(in_set(cats, "manifest"), cats_.parts.at(cats_.manifest_sha256));
  EXPECT_EQ(in_set(dogs, "manifest"), dogs_.parts.at(dogs_.manifest_sha256));
  EXPECT_TRUE(catalog_->Manifest(cats).ok());
  EXPECT_THAT(NamesOf(kAlice), ElementsAre("cats", "1.png"));
}

// Symptom: a power cut took the file `info`, and the set was in no list and took its disk for good.
TEST_F(DataCatalogTest, ADamagedInfoIsMadeAnewFromTheManifest) {
  for (const JobCaller& owner : {kAlice, JobCaller{"", false}}) {
    const auto made = Put(owner, SetOf({{"a.txt", owner.name + "1"}}), "mine");
    ASSERT_TRUE(made.ok()) << made.status();
    const std::string info = absl::StrCat("data/sets/", made->id(), "/info");
    for (const bool there : {true, false}) {
      if (there) folder_.Write(info, "{");
      if (!there) std::filesystem::remove(folder_.File(info));
      Reopen();
      Reopen();  // from the file again
      const auto found = catalog_->Find(owner, "mine");
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_EQ(found->id(), made->id());
      EXPECT_EQ(found->owner(), owner.name);
      EXPECT_EQ(found->title(), "a.txt");
      EXPECT_EQ(found->bytes(), made->bytes());
      EXPECT_EQ(found->created_seconds(), clock_.UnixSeconds());
    }
  }
}

TEST_F(DataCatalogTest, ASetThatCannotBeReadIsLeftOutAndMayComeAgain) {
  const std::string id = Put(kAlice, cats_, "cats")->id();
  folder_.Write(absl::StrCat("data/sets/", id, "/info"), "{");
  std::filesystem::remove(folder_.File(absl::StrCat("data/sets/", id, "/manifest")));
  Reopen();
  EXPECT_THAT(catalog_->List(kEve), IsEmpty());
  const auto again = Put(kAlice, cats_, "cats");
  ASSERT_TRUE(again.ok()) << again.status();
  Reopen();
  EXPECT_THAT(NamesOf(kAlice), ElementsAre("cats"));
}

}  // namespace
}  // namespace stagecoach
