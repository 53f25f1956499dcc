// data.webdataset on tar files that the tests make, and on a part of CIFAR-10 where it is there.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/sanitized.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/data/webdataset.h"
#include "stage/data/formats/tar_members.h"
#include "stage/data/formats/tar_testing.h"
#include "stage/data/picture_source_testing.h"
#include "stage/pictures/picture_testing.h"

namespace stagecoach {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string PngText(int grey) {
  const std::vector<uint8_t> file = GreyPng(grey);
  return std::string(file.begin(), file.end());
}
std::string SampleText(const std::string& key, int grey, int label) {
  return TarMemberText(key + ".png", PngText(grey)) +
         TarMemberText(key + ".cls", absl::StrCat(label, "\n"));
}

class WebDatasetTest : public PictureSourceTest {
 protected:
  WebDatasetTest() {
    SetImage({8, 8, 3}, 3);
    Write("train/1.tar", SampleText("s/30", 30, 2) + SampleText("s/40", 40, 0) + kTarEnd);
    Write("train/0.tar", TarMemberText("s/", "", '5') + SampleText("s/10", 10, 0) +
                             SampleText("s/20", 20, 1) + kTarEnd);
    Write("train/readme", std::string("no shard"));
    Write("test/0.tar", SampleText("a", 100, 1) + SampleText("b", 110, 2) + kTarEnd);
    SetData();
  }
  void SetData(OnBadRecord on_bad_record = OnBadRecord::kFail) {
    spec_.data = WebDatasetData{
        .train = PathOf("train"), .test = PathOf("test"), .on_bad_record = on_bad_record};
  }
  // What the first epoch trains on, in the order of the greys.
  std::vector<std::pair<int, int>> Samples(const BatchSource& source) {
    const Taken taken = TakeAll(source, true, 0, 4);
    const std::vector<int> greys = FirstBytes(taken);
    std::vector<std::pair<int, int>> samples;
    for (int64_t i = 0; i < source.manifest().train_samples; ++i) {
      samples.emplace_back(greys[static_cast<size_t>(i)], taken.labels[static_cast<size_t>(i)]);
    }
    std::sort(samples.begin(), samples.end());
    return samples;
  }
};

TEST_F(WebDatasetTest, ShardsAndSamplesAreInTheirOrderWithTheirLabels) {
  const auto source = Open();
  EXPECT_EQ(source->manifest().train_samples, 4);
  using Pair = std::pair<int, int>;
  EXPECT_THAT(Samples(*source), ElementsAre(Pair(10, 0), Pair(20, 1), Pair(30, 2), Pair(40, 0)));
  const Taken test = TakeAll(*source, false, 0, 1);
  EXPECT_THAT(FirstBytes(test), ElementsAre(100, 110));
  EXPECT_THAT(test.labels, ElementsAre(1, 2));
  EXPECT_EQ(Open({"labels"})->manifest(), source->manifest());
}

// Symptom: of a folder with shards named .TAR or .tar.gz beside others these were left out, and
// nothing said so.
TEST_F(WebDatasetTest, ShardsOfOtherEndingsAreReadOrRefused) {
  EXPECT_THAT(NoteOf(*Open()), HasSubstr("/train\": left out: 1 without an ending"));
  Write("train/2.TAR", SampleText("s/50", 50, 1) + kTarEnd);
  EXPECT_EQ(Open()->manifest().train_samples, 5);
  Write("train/4.tar.part", std::string("x"));
  EXPECT_THAT(NoteOf(*Open()), HasSubstr("1 .tar.part, an unfinished or an older copy"));
  Write("train/3.tar.gz", std::string("\x1f\x8b"));
  EXPECT_THAT(Refusal(), HasSubstr("/train\", 3.tar.gz: a packed shard; unpack it to a .tar file"));
}

TEST_F(WebDatasetTest, OtherMembersOfASampleAreNotLookedAt) {
  Write("train/0.tar", TarMemberText("x.cls", "1") + TarMemberText("x.json", "{}") +
                           TarMemberText("x.PNG", PngText(50)) + TarMemberText("notes.txt", "-") +
                           kTarEnd);
  std::filesystem::remove(PathOf("train/1.tar"));
  EXPECT_THAT(Samples(*Open()), ElementsAre(std::pair(50, 1)));
}

// A tar file that macOS makes has a member "._NAME" before each: "./000: has a picture and no
// .cls".
TEST_F(WebDatasetTest, NamesThatAreNoSamplesAreNotLookedAt) {
  const std::string sidecar = std::string("\0\5\16\7", 4) + std::string(100, '\0');
  Write("train/0.tar", TarMemberText("./.png", "-") + TarMemberText("./._x.png", sidecar) +
                           TarMemberText("./x.png", PngText(50)) +
                           TarMemberText("./._x.cls", sidecar) + TarMemberText("README", "-") +
                           TarMemberText("__about__/x.png", "-") + TarMemberText("./x.cls", "1") +
                           kTarEnd);
  std::filesystem::remove(PathOf("train/1.tar"));
  EXPECT_THAT(Samples(*Open()), ElementsAre(std::pair(50, 1)));
}

// Symptom: "__0__" was taken for WebDataset's own, as "__0__/" and a member of that name without an
// ending are, and "k/" for nothing.
TEST_F(WebDatasetTest, KeysAreWhatWebDatasetTakesForThem) {
  std::filesystem::remove(PathOf("train/1.tar"));
  Write("train/0.tar", SampleText("__0__", 10, 0) + SampleText("__1_", 20, 1) +
                           SampleText("__about__/x", 99, 0) + SampleText("__", 30, 2) +
                           SampleText("k/", 40, 0) + SampleText("a.b/k/", 50, 1) +
                           SampleText("a.b/", 99, 0) + kTarEnd);
  using Pair = std::pair<int, int>;
  EXPECT_THAT(Samples(*Open()),
              ElementsAre(Pair(10, 0), Pair(20, 1), Pair(30, 2), Pair(40, 0), Pair(50, 1)));
}

// As `tar cf 0.tar *.png *.cls` writes them.
TEST_F(WebDatasetTest, MembersOfASampleNeedNotFollowEachOther) {
  Write("train/0.tar", TarMemberText("a.png", PngText(10)) + TarMemberText("b.png", PngText(20)) +
                           TarMemberText("c.cls", "2") + TarMemberText("b.cls", "1") +
                           TarMemberText("a.cls", "0") + TarMemberText("c.png", PngText(30)) +
                           kTarEnd);
  std::filesystem::remove(PathOf("train/1.tar"));
  SetData(OnBadRecord::kSkip);
  using Pair = std::pair<int, int>;
  const auto source = Open();
  EXPECT_EQ(source->bad_records(), 0);
  EXPECT_THAT(Samples(*source), ElementsAre(Pair(10, 0), Pair(20, 1), Pair(30, 2)));
}

// As `tar cf 0.tar *.cls *.png` writes them with masks. Symptom: "(a): has neither a picture nor a
// .cls", where the same members beside each other are taken.
TEST_F(WebDatasetTest, WhatStandsBehindAWholeSampleDoesNotSpoilIt) {
  std::filesystem::remove(PathOf("train/1.tar"));
  for (const std::string& rest :
       {TarMemberText("a.mask.png", PngText(9)) + TarMemberText("b.mask.png", PngText(9)),
        TarMemberText("a.jpg", "", '2') + TarMemberText("b.jpg", "", '1')}) {
    Write("train/0.tar", TarMemberText("a.cls", "0") + TarMemberText("b.cls", "1") +
                             TarMemberText("a.png", PngText(10)) +
                             TarMemberText("b.png", PngText(20)) + rest + kTarEnd);
    EXPECT_THAT(Samples(*Open()), ElementsAre(std::pair(10, 0), std::pair(20, 1)));
  }
}

// Symptom: the last sample's label was thrown away with the missing end, and its picture was a
// second bad record.
TEST_F(WebDatasetTest, ASampleThatIsWholeBeforeAMissingEndCounts) {
  std::filesystem::remove(PathOf("train/1.tar"));
  Write("train/0.tar", TarMemberText("a.png", PngText(10)) + TarMemberText("b.png", PngText(20)) +
                           TarMemberText("a.cls", "0") + TarMemberText("b.cls", "1"));
  SetData(OnBadRecord::kSkip);
  const auto source = Open();
  EXPECT_EQ(source->bad_records(), 1) << "the end";
  EXPECT_THAT(Samples(*source), ElementsAre(std::pair(10, 0), std::pair(20, 1)));
}

TEST_F(WebDatasetTest, ANameWithSeveralDotsIsRefusedByTheRule) {
  Write("train/0.tar",
        TarMemberText("a.0001.png", PngText(10)) + TarMemberText("a.0001.cls", "0") + kTarEnd);
  EXPECT_THAT(Refusal(),
              HasSubstr("(a): has neither a picture nor a .cls; by WebDataset's rule a name ends "
                        "at its first dot, so a.0001.cls has none: take the other dots away"));
  Write("train/0.tar", SampleText("a", 10, 0) + TarMemberText("a.mask.png", PngText(9)) + kTarEnd);
  EXPECT_THAT(Samples(*Open()), testing::Contains(std::pair(10, 0))) << "beside the picture";
}

TEST_F(WebDatasetTest, AShardOfAnotherKindIsNamed) {
  Write("train/0.tar", std::string("\x1f\x8b\x08\0\0\0", 6));
  EXPECT_THAT(Refusal(), HasSubstr("/0.tar\": gzip data, not a tar file; unpack it first"));
  Write("train/0.tar", std::string("<!doctype html><html>") + std::string(600, ' '));
  EXPECT_THAT(Refusal(), HasSubstr("/0.tar\": an HTML page, not a tar file; "));
  Write("train/0.tar", TarMemberText("a.png", PngText(10), 'S') + kTarEnd);
  EXPECT_THAT(Refusal(), HasSubstr("is a sparse file; write the tar file without --sparse"));
  Write("train/0.tar",
        TarMemberText("a.png", PngText(10), '7') + TarMemberText("a.cls", "0") + kTarEnd);
  EXPECT_THAT(Samples(*Open()), testing::Contains(std::pair(10, 0))) << "Python reads it as a file";
}

TEST_F(WebDatasetTest, LongNamesAreThoseOfPaxAndGnu) {
  const std::string name = "s/" + std::string(150, 'k');
  const auto pax = [](const std::string& path) {
    const std::string rest = absl::StrCat(" path=", path, "\n");
    return TarMemberText("pax", absl::StrCat(rest.size() + 3, rest), 'x');
  };
  Write("train/0.tar", pax(name + ".png") + TarMemberText("short1", PngText(60)) +
                           pax(name + ".cls") + TarMemberText("short2", "2") + kTarEnd);
  Write("train/1.tar",
        TarMemberText("././@LongLink", name + ".png" + std::string(1, '\0'), 'L') +
            TarMemberText("short1", PngText(70)) +
            TarMemberText("././@LongLink", name + ".cls" + std::string(1, '\0'), 'L') +
            TarMemberText("short2", "1") + kTarEnd);
  using Pair = std::pair<int, int>;
  EXPECT_THAT(Samples(*Open()), ElementsAre(Pair(60, 2), Pair(70, 1)));
}

std::string PaxText(const std::string& key, const std::string& value) {
  const std::string rest = absl::StrCat(" ", key, "=", value, "\n");
  return absl::StrCat(rest.size() + 2, rest);
}

// Symptom: a name for all members was not looked at, and of several headers for one member the last
// counted.
TEST_F(WebDatasetTest, PaxHeadersCountAsInPythonsTarfile) {
  std::filesystem::remove(PathOf("train/1.tar"));
  const std::string label = TarMemberText("a.cls", "1") + kTarEnd;
  Write("train/0.tar", TarMemberText("g", PaxText("comment", "made"), 'g') +
                           TarMemberText("x", PaxText("path", "a.png"), 'x') +
                           TarMemberText("L", "b.png", 'L') + TarMemberText("c", PngText(10)) +
                           label);
  EXPECT_THAT(Samples(*Open()), ElementsAre(std::pair(10, 1))) << "the first one counts";
  Write("train/0.tar", TarMemberText("x", PaxText("path", "a.png//") + std::string(9, '\0'), 'x') +
                           TarMemberText("c", PngText(20)) + label);
  EXPECT_THAT(Samples(*Open()), ElementsAre(std::pair(20, 1))) << "zeros behind the lines";
  for (const char* const key : {"path", "size"}) {
    Write("train/0.tar", TarMemberText("g", PaxText(key, "9"), 'g') + SampleText("a", 10, 0));
    EXPECT_THAT(Refusal(), HasSubstr(absl::StrCat("the pax header at offset 0 has one ", key,
                                                  " for all members behind it; write")));
  }
}

// Symptom: what such a header gives for a size was skipped, and with it the members behind.
TEST_F(WebDatasetTest, TheSizeOfWhatHasNoContentIsNotLookedAt) {
  std::filesystem::remove(PathOf("train/1.tar"));
  for (const char type : {'1', '2', '3', '4', '5', '6'}) {
    const std::string header = TarMemberText("x", "content", type).substr(0, kTarBlock);
    Write("train/0.tar", header + SampleText("a", 10, 1) + kTarEnd);
    EXPECT_THAT(Samples(*Open()), ElementsAre(std::pair(10, 1))) << type;
  }
  Write("train/0.tar", TarMemberText("a/", "content", '\0').substr(0, kTarBlock) +
                           SampleText("a/b", 10, 1) + kTarEnd);
  EXPECT_THAT(Samples(*Open()), ElementsAre(std::pair(10, 1))) << "a folder of Unix 7";
}

TEST_F(WebDatasetTest, APictureThatIsALinkIsNamed) {
  for (const char type : {'1', '2'}) {
    Write("train/0.tar", SampleText("a", 10, 0) + TarMemberText("b.png", "", type) +
                             TarMemberText("b.cls", "1") + kTarEnd);
    EXPECT_THAT(Refusal(), HasSubstr("(b): has .cls and no picture (.jpg, .png, .tif, .webp); "
                                     "b.png is a link: pack the file itself (tar "));
    Write("train/0.tar", SampleText("a", 10, 0) + TarMemberText("a.jpg", "", type) + kTarEnd);
    EXPECT_THAT(Samples(*Open()), testing::Contains(std::pair(10, 0))) << "beside the picture";
  }
}

TEST_F(WebDatasetTest, BadSamplesAreRefusedOrLeftOutWithFileAndOffset) {
  const std::string good = SampleText("good", 10, 0);
  const struct {
    std::string text, reason;
  } rows[] = {
      {TarMemberText("b.png", PngText(5)), "(b): has a picture and no .cls, its class"},
      {TarMemberText("b.cls", "1"), "(b): has .cls and no picture (.jpg, .png, .tif, .webp)"},
      {SampleText("b", 5, 3), "(b): label 3 is not below the 3 classes of the network"},
      {TarMemberText("b.png", PngText(5)) + TarMemberText("b.cls", "dog"),
       "(b): its .cls is no decimal number"},
      // Symptom: the label was 0.
      {TarMemberText("b.png", PngText(5)) + TarMemberText("b.cls", std::string(64, '0') + "1"),
       "(b): its .cls has over 64 bytes; want a decimal number"},
      {TarMemberText("b.jpg", PngText(5)) + SampleText("b", 5, 1),
       "(b): has two pictures or two .cls; give one of each"},
      {SampleText("b", 5, 1) + TarMemberText("b.cls", "2"),
       "(b): has two pictures or two .cls; give one of each"},
  };
  for (const auto& row : rows) {
    Write("train/0.tar", good + row.text + good + kTarEnd);
    SetData(OnBadRecord::kFail);
    EXPECT_THAT(Refusal(), AllOf(HasSubstr("data.webdataset.train = \""), HasSubstr("/0.tar\", "),
                                 HasSubstr(absl::StrCat("offset ", good.size(), " ", row.reason))));
    SetData(OnBadRecord::kSkip);
    const auto source = Open();
    EXPECT_EQ(source->bad_records(), 1);
    EXPECT_EQ(source->manifest().train_samples, 4);
    EXPECT_THAT(NoteOf(*source), HasSubstr(row.reason));
  }
  // What is no picture is found when it is read.
  Write("train/0.tar",
        good + TarMemberText("b.png", "GIF89a") + TarMemberText("b.cls", "1") + kTarEnd);
  const auto source = Open();
  EXPECT_EQ(source->bad_records(), 1);
  EXPECT_THAT(NoteOf(*source), HasSubstr(absl::StrCat("0.tar\", offset ", good.size() + kTarBlock,
                                                      ": a GIF picture, not JPEG")));
}

// Wherever it is cut off, what is whole before that is there, and one bad record says the rest.
TEST_F(WebDatasetTest, ATarFileThatIsCutOffIsNamedWithTheOffset) {
  const std::string first = SampleText("first", 10, 0), sample = SampleText("a", 20, 1);
  const std::string whole = sample + SampleText("b", 30, 2);
  std::filesystem::remove(PathOf("train/1.tar"));
  for (size_t size = 0; size <= whole.size(); size += size % 500 == 0 ? 12 : 488) {
    Write("train/0.tar", first + whole.substr(0, size));
    SetData(OnBadRecord::kFail);
    EXPECT_THAT(Refusal(), AllOf(HasSubstr("/0.tar\": cut off: "), HasSubstr(" at offset "),
                                 HasSubstr(absl::StrCat(first.size() + size, " bytes; give"))))
        << size;
    SetData(OnBadRecord::kSkip);
    const auto source = Open();
    EXPECT_EQ(source->bad_records(), 1) << size;
    // Of the last member, ".cls", the padding need not be there.
    const size_t padding = kTarBlock - 2;
    const int64_t samples =
        1 + (size + padding >= sample.size()) + (size + padding >= whole.size());
    EXPECT_EQ(source->manifest().train_samples, samples) << size;
  }
}

// Nothing that a header says makes the reader leave the file or take much memory.
TEST_F(WebDatasetTest, DamagedHeadersAreErrors) {
  const std::string whole = SampleText("a", 10, 0) + SampleText("b", 20, 1) + kTarEnd;
  for (uint64_t i = 0; i < (kSanitized ? 300 : 2000); ++i) {
    std::string damaged = whole;
    const RandomStream stream{.seed = 3, .step = static_cast<uint32_t>(i)};
    const size_t at = RandomBits(stream, 0) % damaged.size();
    damaged[at] = static_cast<char>(RandomBits(stream, 1));
    // As who writes a tar would: the sum fits.
    if (i % 2 == 0) {
      const size_t header = RandomBits(stream, 2) % 2 == 0 ? 0 : kTarBlock * 2;
      damaged[header + 124 + RandomBits(stream, 3) % 12] = static_cast<char>(RandomBits(stream, 4));
      std::fill_n(damaged.begin() + static_cast<int64_t>(header) + 148, 8, ' ');
      int sum = 0;
      for (size_t j = 0; j < kTarBlock; ++j) sum += static_cast<uint8_t>(damaged[header + j]);
      damaged.replace(header + 148, 7, absl::StrFormat("%06o", sum) + std::string(1, '\0'));
    }
    Write("damaged", damaged);
    const auto file = OpenedFile::Open(AnyFile(), "field", PathOf("damaged"));
    ASSERT_TRUE(file.ok());
    TarMembers members(file->get());
    for (int count = 0;; ++count) {
      ASSERT_LT(count, 20);
      const auto member = members.Next();
      if (!member.ok() || !member->has_value()) break;
      ASSERT_GE((**member).bytes, 0);
      ASSERT_LE((**member).offset + (**member).bytes, static_cast<int64_t>(damaged.size()));
    }
  }
}

TEST_F(WebDatasetTest, FoldersWithoutShardsAndLinksOutOfThemAreRefused) {
  spec_.data.attributes.Set("test", PathOf("gone"));
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("data.webdataset.test = \""), HasSubstr("No such file")));
  spec_.data.attributes.Set("test", folder_.path());
  EXPECT_THAT(Refusal(), HasSubstr("has no .tar files"));
  SetData();
  std::filesystem::create_symlink(PathOf("test/0.tar"), PathOf("train/2.tar"));
  EXPECT_THAT(Refusal(), HasSubstr("train/2.tar\": a link out of the folder, to "));
  SetData(OnBadRecord::kSkip);
  EXPECT_EQ(Open()->manifest().train_samples, 4);
  // Beneath a data root none is followed, wherever it leads.
  ReadOnlyFolder();
  std::filesystem::create_symlink("0.tar", PathOf("train/3.tar"));
  EXPECT_EQ(Open()->manifest().train_samples, 4);
  SetData();
  EXPECT_THAT(Refusal(), HasSubstr("train/2.tar\": a link, to "));
  spec_.data.attributes.Set("train", std::string("/var"));
  EXPECT_THAT(Refusal(),
              AllOf(HasSubstr("data.webdataset.train = \"/var\": "), HasSubstr("--data-root")));
}

TEST_F(WebDatasetTest, ReadsCifarAsTarFiles) {
  const std::string packed =
      absl::StrCat(STAGECOACH_SOURCE_DIR, "/../shared/data/cifar10/test.tar.xz");
  if (!std::filesystem::exists(packed)) GTEST_SKIP() << packed << " is not here";
  std::filesystem::create_directories(PathOf("cifar"));
  const std::string unpack =
      absl::StrCat("xz -dc '", packed, "' > '", PathOf("cifar/test.tar"), "'");
  if (std::system(unpack.c_str()) != 0) GTEST_SKIP() << "xz is not here";
  SetImage({32, 32, 3});
  spec_.data = WebDatasetData{.train = PathOf("cifar"), .on_bad_record = OnBadRecord::kSkip};
  const auto source = Open();
  EXPECT_EQ(source->bad_records(), 0) << NoteOf(*source);
  EXPECT_EQ(source->manifest().train_samples, 9000);
  EXPECT_EQ(source->manifest().evaluation_samples, 1000);
  std::vector<int> classes(10);
  for (const int32_t label : TakeAll(*source, true, 0, 1285).labels) ++classes.at(label);
  for (const int count : classes) EXPECT_NEAR(count, 900, 60);
}

}  // namespace
}  // namespace stagecoach
