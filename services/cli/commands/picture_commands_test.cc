// `classify` and `segment` on exported weights, with good pictures and bad ones.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/testing/file_text.h"
#include "services/cli/commands/commands.h"
#include "services/cli/pictures/trained_pictures_testing.h"
#include "stage/pictures/decode.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::ordered_json;

class PictureCommandsTest : public TrainedPicturesTest {
 protected:
  PictureCommandsTest() {
    context_.console = &console_;
    context_.stop = &stop_;
    Write("in/a.png", PngFile(MadeUpPicture(8, 8, 3, 1)));
    Write("in/b.jpg", JpegFile(MadeUpPicture(12, 9, 3, 2)));
    Write("in/bad.png", std::string("no picture"));
    Write("in/grey.png", PngFile(MadeUpPicture(8, 8, 1, 3)));
  }
  int Classify(const std::vector<std::string>& pictures, int64_t top = 2) {
    out_.str("");
    notes_.str("");
    return RunClassify(
        {.weights = {.source = folder_.path(), .threads = 1}, .pictures = pictures, .top = top},
        context_);
  }
  int Segment(const std::vector<std::string>& pictures) {
    out_.str("");
    notes_.str("");
    return RunSegment({.weights = {.source = folder_.path(), .threads = 1},
                       .pictures = pictures,
                       .out = PathOf("out")},
                      context_);
  }
  void ExportClassifier() {
    Export("{mlp: {image: [8, 8, 3], hidden: 16, layers: 2, classes: 3}}",
           "{image_folder: {train: /data}}");
    Write("data.json", std::string(R"({"classes": ["ape", "bee", "cow"]})"));
  }
  void ExportSegmenter() {
    Export("{unet: {image: [8, 8, 3], channels_out: 3, base: 4, depth: 1}}",
           "{mask_folder: {train: /t, masks: /m}}");
  }

  std::ostringstream out_, notes_;
  Console console_{out_, notes_, {}};
  StopSignal stop_;
  CommandContext context_;
};

TEST_F(PictureCommandsTest, ClassifyNamesWhatItCannotReadAndGoesOn) {
  ExportClassifier();
  EXPECT_EQ(Classify({PathOf("in"), PathOf("gone.png")}), 1);
  const std::vector<std::string> lines = absl::StrSplit(out_.str(), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 7u) << "a header, and two classes for each of three pictures\n"
                              << out_.str();
  EXPECT_THAT(lines[0], HasSubstr("PICTURE"));
  EXPECT_TRUE(absl::StartsWith(lines[1], PathOf("in/a.png"))) << lines[1];
  EXPECT_TRUE(absl::StartsWith(lines[3], PathOf("in/b.jpg"))) << lines[3];
  EXPECT_THAT(notes_.str(), HasSubstr("in/bad.png: text, not JPEG, PNG, TIFF or WebP"));
  EXPECT_THAT(notes_.str(), HasSubstr("gone.png: no such file or folder"));
  EXPECT_THAT(notes_.str(), HasSubstr("2 of 5 pictures could not be used"));
  EXPECT_EQ(Classify({PathOf("in/a.png")}), 0);
  EXPECT_EQ(notes_.str(), "");
}

TEST_F(PictureCommandsTest, ClassifyTellsProgramsAllOfIt) {
  ExportClassifier();
  context_.output = OutputFormat::kJson;
  EXPECT_EQ(Classify({PathOf("in")}, 3), 1);
  const Json told = Json::parse(out_.str());
  EXPECT_EQ(told["weights"], weights_file());
  ASSERT_EQ(told["pictures"].size(), 4u);
  const Json& first = told["pictures"][0];
  EXPECT_EQ(first["picture"], PathOf("in/a.png"));
  ASSERT_EQ(first["classes"].size(), 3u);
  double sum = 0;
  for (const Json& one : first["classes"]) {
    sum += one["probability"].get<double>();
    EXPECT_EQ(one["name"], (std::vector<std::string>{"ape", "bee", "cow"}[one["class"]]));
  }
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_THAT(told["pictures"][2]["error"].get<std::string>(),
              HasSubstr("text, not JPEG, PNG, TIFF or WebP"));
  context_.output = OutputFormat::kNdjson;
  EXPECT_EQ(Classify({PathOf("in")}, 3), 1);
  const std::vector<std::string> lines = absl::StrSplit(out_.str(), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 4u) << "one a picture";
  EXPECT_EQ(Json::parse(lines[0]), first);
}

// Symptom: a pipe's name was written to the terminal as it is, which took it for a command.
TEST_F(PictureCommandsTest, ANameThatATerminalWouldObeyIsEscaped) {
  ExportClassifier();
  ASSERT_EQ(mkfifo(PathOf("in/\x1b[31m.png").c_str(), 0600), 0);
  EXPECT_EQ(Classify({PathOf("in")}), 1);
  EXPECT_THAT(notes_.str(), HasSubstr("\\x1b[31m.png: not a regular file"));
  EXPECT_THAT(notes_.str(), Not(HasSubstr("\x1b")));
}

TEST_F(PictureCommandsTest, ClassifyRefusesATextNetwork) {
  Export("{gpt: {layers: 1, width: 8, heads: 2, context: 4, vocabulary: 128}}",
         "{text: {path: /t}}");
  EXPECT_EQ(Classify({PathOf("in/a.png")}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("model: gpt; reads a text, not pictures"));
}

TEST_F(PictureCommandsTest, SegmentWritesAMaskForEachPictureInItsSize) {
  ExportSegmenter();
  context_.output = OutputFormat::kJson;
  EXPECT_EQ(Segment({PathOf("in")}), 1);
  const Json told = Json::parse(out_.str());
  ASSERT_EQ(told["pictures"].size(), 4u);
  const Json& second = told["pictures"][1];
  EXPECT_EQ(second["mask"], PathOf("out/b.png"));
  EXPECT_EQ(second["height"], 12);
  EXPECT_EQ(second["width"], 9);
  const auto mask = DecodeMask(FileBytes(PathOf("out/b.png")));
  ASSERT_TRUE(mask.ok()) << mask.status();
  EXPECT_EQ(mask->height, 12);
  EXPECT_EQ(mask->width, 9);
  double sum = 0;
  for (const Json& one : second["classes"]) {
    const auto id = one["class"].get<int>();
    const auto pixels = std::count(mask->bytes.begin(), mask->bytes.end(), id);
    EXPECT_EQ(one["share"].get<double>(), static_cast<double>(pixels) / (12 * 9));
    sum += one["share"].get<double>();
  }
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_FALSE(std::filesystem::exists(PathOf("out/bad.png")));
}

TEST_F(PictureCommandsTest, SegmentOverwritesNothing) {
  ExportSegmenter();
  EXPECT_EQ(Segment({PathOf("in/a.png")}), 0);
  EXPECT_THAT(out_.str(), HasSubstr(PathOf("out/a.png")));
  EXPECT_EQ(Segment({PathOf("in/a.png")}), 1);
  EXPECT_THAT(notes_.str(),
              HasSubstr("out/a.png: is there already; name another folder with --out"));
  Write("more/b.jpg", JpegFile(MadeUpPicture(8, 8, 3, 4)));
  EXPECT_EQ(Segment({PathOf("in/b.jpg"), PathOf("more")}), 1);
  EXPECT_THAT(notes_.str(), HasSubstr("more/b.jpg: its mask would be"));
  EXPECT_THAT(notes_.str(), Not(HasSubstr("is there already")));
}

// Symptom: `segment` removed a folder OUT/NAME.png.unfinished with all that was in it.
TEST_F(PictureCommandsTest, SegmentTakesAwayNoFolder) {
  ExportSegmenter();
  Write("out/a.png.unfinished/letter", std::string("dear reader"));
  Write("out/b.png.unfinished", std::string("half a mask"));
  EXPECT_EQ(Segment({PathOf("in/a.png"), PathOf("in/b.jpg")}), 1);
  EXPECT_THAT(notes_.str(), HasSubstr("out/a.png.unfinished: is there already and is no file; take "
                                      "it away, or name another folder with --out"));
  EXPECT_TRUE(std::filesystem::exists(PathOf("out/a.png.unfinished/letter")));
  EXPECT_TRUE(std::filesystem::exists(PathOf("out/b.png")));
  EXPECT_FALSE(std::filesystem::exists(PathOf("out/b.png.unfinished")));
}

// It was said of each picture, after the network had looked at it.
TEST_F(PictureCommandsTest, AFolderForMasksThatCannotBeOneIsSaidOnce) {
  ExportSegmenter();
  Write("out", std::string("a file"));
  EXPECT_NE(Segment({PathOf("in")}), 0);
  EXPECT_THAT(notes_.str(), HasSubstr("--out: make folder " + PathOf("out")));
  EXPECT_THAT(notes_.str(), Not(HasSubstr("bad.png")));
}

}  // namespace
}  // namespace stagecoach
