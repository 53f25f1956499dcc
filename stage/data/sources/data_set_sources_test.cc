// Readers on a data set of the cluster: the same samples and the same digest as on plain files, and
// only the bytes that they need.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/testing/status_is.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/data/cifar.h"
#include "plan/data/idx.h"
#include "plan/data/image_folder.h"
#include "plan/data/json_lines.h"
#include "plan/data/token_file.h"
#include "plan/data/webdataset.h"
#include "stage/data/formats/tar_testing.h"
#include "stage/data/listed_pictures.h"
#include "stage/data/picture_source_testing.h"
#include "stage/data/sources/text_source_testing.h"
#include "stage/data/sources/token_file_testing.h"
#include "stage/files/folder_data_sets_testing.h"
#include "stage/pictures/picture_testing.h"

namespace stagecoach {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Each test gives its job twice: `In` is a path of the folder, then one of the set.
class DataSetSources {
 public:
  explicit DataSetSources(const TemporaryFolder& folder)
      : folder_(folder), cache_(folder.MakeFolder("cache")) {}

  std::string In(const std::string& name) const {
    return of_set_ ? FolderDataSets::Path(name) : folder_.File(name);
  }
  // The bytes of the first mini-batches of a job of both kinds, one behind the other.
  template <typename SetData>
  std::vector<std::byte> Read(JobSpec spec, const Network& network,
                              const std::vector<std::string>& reads, bool of_set, SetData set_data,
                              DatasetManifest* manifest) {
    of_set_ = of_set;
    sets_.ForgetAsked();
    set_data(&spec);
    DataRoots::Options options{.cache_folder = folder_.MakeFolder(of_set ? "cache-set" : "cache")};
    if (of_set) options.data_sets = &sets_;
    if (!of_set) options.roots = {folder_.path()};
    const DataRoots roots(options);
    const auto source = OpenSource(spec, network, reads, roots);
    EXPECT_TRUE(source.ok()) << source.status();
    if (!source.ok()) return {};
    *manifest = (*source)->manifest();
    opened_ = sets_.asked();
    std::vector<std::byte> all;
    for (uint64_t step = 0; step < 3; ++step) {
      for (int32_t i = 0; i < spec.training.micro_batches; ++i) {
        for (const bool training : {true, false}) {
          const auto batch = training ? (*source)->Train(step, MicroBatchId(i), reads)
                                      : (*source)->Evaluation(step, MicroBatchId(i), reads);
          EXPECT_TRUE(batch.ok()) << batch.status();
          if (!batch.ok()) return {};
          for (const auto& array : batch->arrays) all.insert(all.end(), array.begin(), array.end());
        }
      }
    }
    return all;
  }
  template <typename SetData>
  void ExpectSame(const JobSpec& spec, const Network& network,
                  const std::vector<std::string>& reads, SetData set_data) {
    DatasetManifest plain, of_set;
    const auto wanted = Read(spec, network, reads, false, set_data, &plain);
    for (const bool knows : {true, false}) {
      sets_.set_knows_digests(knows);
      const auto found = Read(spec, network, reads, true, set_data, &of_set);
      EXPECT_FALSE(wanted.empty());
      EXPECT_TRUE(found == wanted) << "other samples; digests are known: " << knows;
      EXPECT_EQ(of_set, plain) << of_set.sha256 << " and " << plain.sha256;
    }
  }
  // Bytes that were asked for until the source was open, by path.
  const std::map<std::string, int64_t>& opened() const { return opened_; }
  FolderDataSets& sets() { return sets_; }

 private:
  const TemporaryFolder& folder_;
  const std::string cache_;
  FolderDataSets sets_{folder_.path()};
  bool of_set_ = false;
  std::map<std::string, int64_t> opened_;
};

class PicturesOfDataSetTest : public PictureSourceTest {
 protected:
  template <typename SetData>
  void ExpectSame(SetData set_data) {
    reader_.ExpectSame(spec_, network_, {"images", "labels"}, set_data);
  }
  DataSetSources reader_{folder_};
};

TEST_F(PicturesOfDataSetTest, AnImageFolderReadsNotAllPicturesWhenItIsOpened) {
  SetImage({8, 8, 3}, 3);
  int grey = 10;
  for (const char* name :
       {"train/ape/b.png", "train/ape/deep/a.PNG", "train/bee/1.png", "train/cow/x.png",
        "test/ape/1.png", "test/bee/1.png", "test/cow/1.png"}) {
    Write(name, GreyPng(grey += 10));
  }
  for (int i = 0; i < 150; ++i) Write(absl::StrCat("test/cow/of-many-", i, ".png"), GreyPng(i));
  ExpectSame([&](JobSpec* spec) {
    spec->data = ImageFolderData{.train = reader_.In("train"),
                                 .test = reader_.In("test"),
                                 .pictures = {.decode_threads = 1}};
  });
  // Of the first ones of a list the EXIF is looked at.
  const auto read = std::count_if(
      reader_.opened().begin(), reader_.opened().end(),
      [](const auto& asked) { return asked.first.starts_with("test/") && asked.second > 0; });
  EXPECT_LE(read, kMostLookedAt);
}

TEST_F(PicturesOfDataSetTest, ShardsOfAWebDatasetAreListedAndRead) {
  SetImage({8, 8, 3}, 3);
  const auto sample = [](const std::string& key, int grey, int label) {
    const std::vector<uint8_t> png = GreyPng(grey);
    return TarMemberText(key + ".png", std::string(png.begin(), png.end())) +
           TarMemberText(key + ".cls", absl::StrCat(label, "\n"));
  };
  Write("train/1.tar", sample("s/30", 30, 2) + sample("s/40", 40, 0) + kTarEnd);
  Write("train/0.tar", sample("s/10", 10, 0) + sample("s/20", 20, 1) + kTarEnd);
  Write("test/0.tar", sample("a", 100, 1) + sample("b", 110, 2) + kTarEnd);
  ExpectSame([&](JobSpec* spec) {
    spec->data = WebDatasetData{.train = reader_.In("train"), .test = reader_.In("test")};
  });
}

TEST_F(PicturesOfDataSetTest, IdxFilesAreRead) {
  SetImage({2, 3, 1});
  const auto idx = [](const std::vector<int>& extents, int bytes) {
    std::string text("\0\0\x08", 3);
    text += static_cast<char>(extents.size());
    for (const int extent : extents) text += std::string(3, '\0') + static_cast<char>(extent);
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(i % 10);
    return text;
  };
  Write("i", idx({30, 2, 3}, 180));
  Write("l", idx({30}, 30));
  Write("ti", idx({10, 2, 3}, 60));
  Write("tl", idx({10}, 10));
  ExpectSame([&](JobSpec* spec) {
    spec->data = IdxData{.images = reader_.In("i"),
                         .labels = reader_.In("l"),
                         .test_images = reader_.In("ti"),
                         .test_labels = reader_.In("tl")};
  });
}

class TextOfDataSetTest : public TextSourceTest {
 protected:
  template <typename SetData>
  void ExpectSame(SetData set_data, int64_t vocabulary = 256) {
    reader_.ExpectSame(spec_, NetworkOnText(16, vocabulary), kTextInputs, set_data);
  }
  DataSetSources reader_{folder_};
};

TEST_F(TextOfDataSetTest, BytesOfATextAreRead) {
  Write(Counting(20'000));
  ExpectSame(
      [&](JobSpec* spec) { spec->data = TextData{.path = reader_.In("text"), .bytes = true}; });
}

TEST_F(TextOfDataSetTest, AFileOfTokensIsRead) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < 3000; ++i) ids.push_back(i % 97);
  folder_.Write("train", LlmCFile<uint16_t>(ids));
  spec_.network = GptSpec{.vocabulary = 100};
  ExpectSame([&](JobSpec* spec) { spec->data = TokenFileData{.files = {reader_.In("train")}}; },
             100);
}

TEST_F(TextOfDataSetTest, MegatronsTokensLieBesideTheirIndex) {
  std::vector<std::vector<int64_t>> documents;
  for (int64_t i = 0; i < 90; ++i) documents.emplace_back(33, i);
  const MegatronPair pair = MegatronFiles(documents, 8);
  folder_.Write("train.idx", pair.index);
  folder_.Write("train.bin", pair.tokens);
  spec_.network = GptSpec{.vocabulary = 100};
  ExpectSame([&](JobSpec* spec) { spec->data = TokenFileData{.files = {reader_.In("train.idx")}}; },
             100);
}

TEST_F(TextOfDataSetTest, LinesOfJsonAreRead) {
  std::string text;
  for (int i = 0; i < 400; ++i) absl::StrAppend(&text, "{\"text\": \"document ", i, "\"}\n");
  folder_.Write("lines.jsonl", text);
  spec_.network = GptSpec{.vocabulary = 256};
  ExpectSame(
      [&](JobSpec* spec) { spec->data = JsonLinesData{.files = {reader_.In("lines.jsonl")}}; },
      256);
}

// The error names the field, the path and what the set said.
TEST_F(TextOfDataSetTest, AReadThatGetsNoBytesSaysWhich) {
  Write(Counting(2000));
  FolderDataSets& sets = reader_.sets();
  sets.Fail(absl::UnavailableError("nothing has moved for 60 s"));
  spec_.data = TextData{.path = FolderDataSets::Path("text"), .bytes = true};
  const DataRoots roots({.data_sets = &sets});
  EXPECT_THAT(OpenSource(spec_, NetworkOnText(16, 256), kTextInputs, roots).status(),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("data.text.path = \"store:/data/"), HasSubstr("/text\": "),
                             HasSubstr("nothing has moved"))));
}

}  // namespace
}  // namespace stagecoach
