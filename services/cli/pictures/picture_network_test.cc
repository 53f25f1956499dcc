#include "services/cli/pictures/picture_network.h"

#include <gmock/gmock.h>

#include <cmath>

#include "services/cli/pictures/trained_pictures_testing.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;

TEST(LikeliestClasses, AreThoseOfTheSoftmaxInOrder) {
  const std::vector<float> logits = {0, std::log(2.0f), 0, std::log(4.0f)};  // 1/8, 2/8, 1/8, 4/8
  const std::vector<ClassShare> all = LikeliestClasses(logits, 9);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].id, 3);
  EXPECT_NEAR(all[0].probability, 0.5, 1e-7);
  EXPECT_EQ(all[1].id, 1);
  EXPECT_EQ(all[2].id, 0) << "of equal ones the lower id, as accuracy counts";
  EXPECT_NEAR(all[2].probability, 0.125, 1e-7);
  EXPECT_EQ(LikeliestClasses(logits, 1).size(), 1u);
  EXPECT_EQ(LikeliestClasses(std::vector<float>{1e30f, -1e30f}, 1)[0].probability, 1);
}

class PictureNetworkTest : public TrainedPicturesTest {
 protected:
  absl::StatusOr<std::unique_ptr<PictureNetwork>> Load(
      PictureAnswer wanted = PictureAnswer::kClass) const {
    return PictureNetwork::Load(weights_file(), spec_, facts_, wanted, MakeReferenceBackend({}));
  }
  std::string Refusal(PictureAnswer wanted = PictureAnswer::kClass) const {
    return std::string(Load(wanted).status().message());
  }
  static constexpr const char* kMlp =
      "{mlp: {image: [8, 8, 3], hidden: 16, layers: 2, classes: 5}}";
  static constexpr const char* kUnet =
      "{unet: {image: [8, 8, 3], channels_out: 3, base: 2, depth: 1}}";
  DataFacts facts_;
};

TEST_F(PictureNetworkTest, TheAnswerForAPictureIsThatOfTheNumbersThatTrainingMakes) {
  Export(kMlp, "{image_folder: {train: /data, mean: [0.5, 0.4, 0.3], deviation: [0.2]}}");
  const auto network = Load();
  ASSERT_TRUE(network.ok()) << network.status();
  const Picture a = MadeUpPicture(8, 8, 3, 1), b = MadeUpPicture(8, 8, 3, 2);
  const auto both = (*network)->Run(std::vector{a, b});
  ASSERT_TRUE(both.ok()) << both.status();
  ASSERT_EQ(both->size(), 2u);
  EXPECT_EQ((*both)[1].size(), 5u);
  EXPECT_NE((*both)[0], (*both)[1]);
  EXPECT_EQ((*(*network)->Run(std::vector{b}))[0], (*both)[1]) << "whatever else is in the batch";
  Export(kMlp, "{image_folder: {train: /data}}");
  EXPECT_NE((*(*Load())->Run(std::vector{b}))[0], (*both)[1]) << "mean and deviation count";
  facts_ = {.mean = {0.5, 0.4, 0.3}, .deviation = {0.2, 0.2, 0.2}};
  Export(kMlp, "{image_folder: {train: /data, measure: true}}");
  EXPECT_EQ((*(*Load())->Run(std::vector{b}))[0], (*both)[1]) << "those that were measured, too";
}

TEST_F(PictureNetworkTest, WantsWhatWasMeasured) {
  Export(kMlp, "{image_folder: {train: /data, measure: true}}");
  EXPECT_THAT(Refusal(), HasSubstr("data.image_folder.measure: the mean and deviation that were "
                                   "measured are not beside the weights, in data.json"));
  facts_ = {.mean = {0.5}, .deviation = {0.5}};
  EXPECT_THAT(Refusal(), HasSubstr("are not beside the weights")) << "not of these channels";
}

TEST_F(PictureNetworkTest, NamesClassesWhereTheyAreKnown) {
  Export(kMlp, "{idx: {images: /i, labels: /l}}");
  facts_.classes = {"ape", "bee"};
  const auto network = Load();
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_EQ((*network)->ClassName(1), "bee");
  EXPECT_EQ((*network)->ClassName(2), "");
  EXPECT_EQ((*network)->classes(), 5);
}

TEST_F(PictureNetworkTest, RefusesOtherNetworksAndNamesWhatUsesThem) {
  Export("{gpt: {layers: 1, width: 8, heads: 2, context: 4, vocabulary: 128}}",
         "{text: {path: /t}}");
  EXPECT_EQ(Refusal(),
            "model: gpt; reads a text, not pictures: `stagecoach generate` writes text with it");
  Export(kUnet, "{mask_folder: {train: /t, masks: /m}}");
  EXPECT_EQ(Refusal(), "model: unet; gives a class for each pixel: use `stagecoach segment`");
  EXPECT_TRUE(Load(PictureAnswer::kClassOfEachPixel).ok());
  Export(kMlp, "{idx: {images: /i, labels: /l}}");
  EXPECT_EQ(Refusal(PictureAnswer::kClassOfEachPixel),
            "model: mlp; gives one class for a whole picture: use `stagecoach classify`");
}

}  // namespace
}  // namespace stagecoach
