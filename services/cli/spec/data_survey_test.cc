#include "services/cli/spec/data_survey.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/testing/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/pictures/picture_testing.h"

namespace stagecoach {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class DataSurveyTest : public testing::Test {
 protected:
  void WritePictures(const std::string& below, int count, int64_t side = 8) {
    for (int i = 0; i < count; ++i) {
      folder_.Write(absl::StrCat(below, "/", i, ".png"), PngFile(MadeUpPicture(side, side, 3)));
    }
  }
  absl::StatusOr<DataSurvey> SurveyOf(const std::string& model, const std::string& data) {
    const std::string file = folder_.Write(
        "job.yaml", "name: sample\nmodel:\n  " + model + "\ndata:\n  " + data +
                        "\ntraining: {steps: 3, batch_size: 4, micro_batches: 2, optimizer: "
                        "{sgd: {}}, learning_rate: {constant: {peak: 0.1}}}\n"
                        "pipeline: {stages: 1}\n");
    const absl::StatusOr<SpecFile> spec_file = ReadSpecFile(file);
    EXPECT_TRUE(spec_file.ok()) << spec_file.status();
    if (!spec_file.ok()) return spec_file.status();
    ASSIGN_OR_RETURN(const ValidSpecFile valid, ValidateSpecFile(*spec_file));
    return SurveyData(valid);
  }
  std::string RefusalOf(const std::string& model, const std::string& data) {
    const absl::Status status = SurveyOf(model, data).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  }

  const std::string kMlp = "mlp: {image: [8, 8, 3], hidden: 8, layers: 2, classes: 2}";
  const std::string kUnet = "unet: {image: [16, 16, 3], channels_out: 3, base: 4, depth: 1}";
  const std::string kGpt = "gpt: {layers: 1, width: 16, heads: 2, context: 16, vocabulary: 128}";
  const TemporaryFolder folder_;
};

TEST_F(DataSurveyTest, TellsClassesWithTheirCountsAndWhatIsHeldOut) {
  WritePictures("d/a", 41);
  WritePictures("d/b", 39);
  folder_.Write("d/b/x.gif", "GIF");
  const auto survey = SurveyOf(kMlp, "image_folder: {train: d}");
  ASSERT_TRUE(survey.ok()) << survey.status();
  EXPECT_EQ(survey->found, "80 pictures in 2 classes (a 41, b 39), 8 held out");
  EXPECT_THAT(survey->notes, ElementsAre(HasSubstr("left out: 1 .gif, a format that is not read")));
}

// Symptom: `validate` said ok of data with which `local` failed at once.
TEST_F(DataSurveyTest, RefusesWhatTheStagesWouldRefuse) {
  WritePictures("d/a", 6);
  folder_.MakeFolder("d/c");
  EXPECT_THAT(RefusalOf(kMlp, "image_folder: {train: d}"),
              AllOf(HasSubstr("d\", c: a class with no JPEG, PNG, TIFF or WebP files"),
                    HasSubstr("job.yaml:5:18: ")));
  WritePictures("d/b", 6);
  WritePictures("d/c", 6);
  EXPECT_THAT(RefusalOf(kMlp, "image_folder: {train: d}"),
              HasSubstr("3 folders, the class of \"c\", 2, is not below model.mlp.classes = 2"));
  folder_.MakeFolder("shards");
  EXPECT_THAT(RefusalOf(kMlp, "webdataset: {train: shards}"), HasSubstr("has no .tar files"));
  WritePictures("pictures", 12, 16);
  folder_.MakeFolder("masks");
  EXPECT_THAT(RefusalOf(kUnet, "mask_folder: {train: pictures, masks: masks}"),
              HasSubstr("masks\": has no JPEG, PNG, TIFF or WebP files"));
  folder_.Write("text", std::string(400, 'a') + "\xc4");
  EXPECT_THAT(RefusalOf(kGpt, "text: {path: text}"),
              HasSubstr("the byte at offset 400 is not below model.gpt.vocabulary = 128"));
}

TEST_F(DataSurveyTest, ReadsTheFirstRecordsUnlessBadOnesAreLeftOut) {
  WritePictures("d/a", 10);
  WritePictures("d/b", 10);
  folder_.Write("d/a/0.png", "no");
  EXPECT_THAT(RefusalOf(kMlp, "image_folder: {train: d}"), HasSubstr("a/0.png: text, not JPEG"));
  EXPECT_TRUE(SurveyOf(kMlp, "image_folder: {train: d, on_bad_record: skip}").ok());
}

TEST_F(DataSurveyTest, TellsTheBytesOfATextAndOutputsThatNothingAsksFor) {
  folder_.Write("text", std::string(400, 'a') + "b");
  const auto text = SurveyOf(kGpt, "text: {path: text}");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(text->found, HasSubstr("401 bytes, 2 different ones of a vocabulary of 128, in "));
  WritePictures("d/a", 10);
  const auto pictures = SurveyOf(kMlp, "image_folder: {train: d}");
  ASSERT_TRUE(pictures.ok()) << pictures.status();
  EXPECT_THAT(pictures->notes, ElementsAre(HasSubstr("1 class, and the network has 2")));
}

}  // namespace
}  // namespace stagecoach
