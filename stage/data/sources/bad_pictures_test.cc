// Files that are no whole picture, and pictures of forms that most data sets do not have, in every
// source that reads files: with on_bad_record: skip they are counted and named, with fail they end
// the job by name, and nothing else is harmed. What may be wrong with a folder or a tar file stands
// with its source.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/data/image_folder.h"
#include "plan/data/mask_folder.h"
#include "plan/data/webdataset.h"
#include "stage/data/formats/tar_testing.h"
#include "stage/data/picture_source_testing.h"
#include "stage/pictures/picture_testing.h"

namespace stagecoach {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using FileBytes = std::vector<uint8_t>;

constexpr int64_t kBadSide = 16;
constexpr int64_t kGoodPictures = 3;
constexpr int64_t kMuchMemory = int64_t{32} << 20;

FileBytes Cut(FileBytes file, size_t bytes) {
  file.resize(bytes);
  return file;
}

// Of 60,000 x 60,000 pixels, by its header.
FileBytes HugeJpeg() {
  FileBytes jpeg = JpegFile(MadeUpPicture(kBadSide, kBadSide, 3));
  const auto frame = FrameOf(jpeg);
  for (const int at : {5, 7}) {
    frame[at] = 60000 >> 8;
    frame[at + 1] = 60000 & 0xff;
  }
  return jpeg;
}

// In the middle of its pixels stands the marker of a file's beginning.
FileBytes CorruptJpeg() {
  FileBytes jpeg = JpegFile(MadeUpPicture(64, 64, 3));
  const size_t middle = jpeg.size() - 200;
  jpeg[middle] = 0xff;
  jpeg[middle + 1] = 0xd8;
  return jpeg;
}

FileBytes CorruptPng() {
  FileBytes png = PngFile(MadeUpPicture(kBadSide, kBadSide, 3));
  png[png.size() / 2] ^= 0x10;
  return png;
}

struct PictureRow {
  const char* what;
  FileBytes file;
  const char* reason;  // empty: it is read
};

std::vector<PictureRow> PictureRows() {
  const Picture colours = MadeUpPicture(kBadSide, kBadSide, 3);
  const FileBytes jpeg = JpegFile(colours), png = PngFile(colours);
  const auto rows_of = [](size_t bytes_of_pixel) {
    FileBytes rows(kBadSide * kBadSide * bytes_of_pixel);
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<uint8_t>(i * 31 % 4);
    return rows;
  };
  const auto png_of = [&](size_t bytes_of_pixel, const PngForm& form) {
    return PngFile(kBadSide, kBadSide, rows_of(bytes_of_pixel), form);
  };
  return {
      {"a corrupt JPEG", CorruptJpeg(), "JPEG: Corrupt JPEG data"},
      {"a truncated JPEG", Cut(jpeg, jpeg.size() - 40), "JPEG: Premature end of input file"},
      {"a corrupt PNG", CorruptPng(), "PNG: "},
      {"a truncated PNG", Cut(png, png.size() - 30), "PNG: the file is cut off"},
      {"no bytes", {}, "an empty file, not JPEG, PNG, TIFF or WebP; give one of them"},
      {"a text", {'t', 'e', 'x', 't'}, "text, not JPEG, PNG, TIFF or WebP"},
      {"a JPEG that says it is huge", HugeJpeg(),
       "JPEG: a picture of 60000 x 60000 pixels; at most"},
      {"a PNG that says it is huge", PngHeader(60000, 60000),
       "PNG: a picture of 60000 x 60000 pixels; at most"},
      {"a JPEG in CMYK", JpegFile(MadeUpPicture(kBadSide, kBadSide, 4)), ""},
      {"a JPEG in grey", JpegFile(MadeUpPicture(kBadSide, kBadSide, 1)), ""},
      {"a PNG in grey with alpha", png_of(2, {.colours = PNG_COLOR_TYPE_GRAY_ALPHA}), ""},
      {"a PNG in colours with alpha", png_of(4, {.colours = PNG_COLOR_TYPE_RGB_ALPHA}), ""},
      {"a PNG of 16 bits", png_of(6, {.depth = 16}), ""},
      {"a PNG with a palette",
       png_of(1, {.colours = PNG_COLOR_TYPE_PALETTE,
                  .palette = {{255, 0, 0}, {0, 255, 0}, {0, 0, 255}, {9, 9, 9}}}),
       ""},
  };
}

// The data source that the files are read by.
class BadPicturesTest : public PictureSourceTest, public testing::WithParamInterface<const char*> {
 protected:
  BadPicturesTest() {
    SetImage({kBadSide, kBadSide, 3}, 3);
    spec_.evaluation = {};
    if (!Is("mask_folder")) return;
    network_.wires[1].type.shape = {kBadSide, kBadSide};
    network_.inputs = {{"images", 0}, {"masks", 3}};
    network_.objective.targets = WireId(1);
  }
  static bool Is(const char* kind) { return std::string(GetParam()) == kind; }

  // Three good ones, and this one.
  void WriteAll(const FileBytes& bad) {
    const Picture mask(kBadSide, kBadSide, 1);
    std::string tar;
    for (const std::string name : {"1", "2", "3", "bad"}) {
      const FileBytes file =
          name == "bad" ? bad : PngFile(MadeUpPicture(kBadSide, kBadSide, 3, name[0] - '0'));
      Write("classes/ape/" + name + ".png", file);
      Write("pictures/" + name + ".png", file);
      Write("masks/" + name + ".png", PngFile(mask));
      tar += TarMemberText(name + ".png", std::string(file.begin(), file.end())) +
             TarMemberText(name + ".cls", "1");
    }
    Write("tars/0.tar", tar + kTarEnd);
  }
  void SetData(OnBadRecord on_bad_record) {
    if (Is("image_folder")) {
      spec_.data = ImageFolderData{.train = PathOf("classes"), .on_bad_record = on_bad_record};
    } else if (Is("webdataset")) {
      spec_.data = WebDatasetData{.train = PathOf("tars"), .on_bad_record = on_bad_record};
    } else {
      spec_.data = MaskFolderData{
          .train = PathOf("pictures"), .masks = PathOf("masks"), .on_bad_record = on_bad_record};
    }
  }
  // How errors name it.
  static const char* Place() {
    return Is("image_folder") ? "data.image_folder.train = "
           : Is("webdataset") ? "data.webdataset.train = "
                              : "data.mask_folder.train = ";
  }
  static const char* File() { return Is("webdataset") ? "0.tar\", offset " : "bad.png: "; }
};

TEST_P(BadPicturesTest, AreLeftOutCountedAndNamed) {
  SetData(OnBadRecord::kSkip);
  for (const PictureRow& row : PictureRows()) {
    SCOPED_TRACE(row.what);
    WriteAll(row.file);
    const bool bad = *row.reason != '\0';
    const auto source = Open({"images"});
    ASSERT_NE(source, nullptr);
    EXPECT_EQ(source->bad_records(), bad ? 1 : 0);
    EXPECT_EQ(source->manifest().train_samples, kGoodPictures + (bad ? 0 : 1));
    EXPECT_TRUE(StepError(*source, 1).ok()) << StepError(*source, 1);
    if (!bad) continue;
    EXPECT_THAT(NoteOf(*source), AllOf(HasSubstr("1 bad record left out: "), HasSubstr(Place()),
                                       HasSubstr(File()), HasSubstr(row.reason)));
  }
}

TEST_P(BadPicturesTest, FailTheStepThatNeedsThemByName) {
  SetData(OnBadRecord::kFail);
  for (const PictureRow& row : PictureRows()) {
    SCOPED_TRACE(row.what);
    WriteAll(row.file);
    const auto source = Open({"images"});
    ASSERT_NE(source, nullptr);
    const absl::Status status = StepError(*source, 1);
    EXPECT_EQ(status.ok(), *row.reason == '\0') << status;
    if (status.ok()) continue;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(Place()), HasSubstr(File()), HasSubstr(row.reason)));
    EXPECT_TRUE(absl::IsInvalidArgument(DataError(status)))
        << "what ends the job at once: " << status;
    EXPECT_EQ(StepError(*source, 1), status) << "as often as it is asked for";
  }
}

TEST_P(BadPicturesTest, TakeNoMemoryForWhatTheirHeadersSay) {
  SetData(OnBadRecord::kSkip);
  for (const FileBytes& huge : {HugeJpeg(), PngHeader(60000, 60000)}) {
    WriteAll(huge);
    EXPECT_LT(PeakBytesOf([this] { EXPECT_EQ(Open({"images"})->bad_records(), 1); }), kMuchMemory);
  }
}

INSTANTIATE_TEST_SUITE_P(EverySource, BadPicturesTest,
                         testing::Values("image_folder", "webdataset", "mask_folder"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace stagecoach
