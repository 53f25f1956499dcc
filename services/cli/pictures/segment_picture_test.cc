#include "services/cli/pictures/segment_picture.h"

#include <gmock/gmock.h>

#include "services/cli/pictures/trained_pictures_testing.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(PartStarts, CoverTheLengthAndTheLastOneEndsWithIt) {
  EXPECT_THAT(PartStarts(8, 8), ElementsAre(0));
  EXPECT_THAT(PartStarts(16, 8), ElementsAre(0, 8));
  EXPECT_THAT(PartStarts(17, 8), ElementsAre(0, 8, 9));
  EXPECT_THAT(PartStarts(9, 8), ElementsAre(0, 1));
}

class SegmentPictureTest : public TrainedPicturesTest {
 protected:
  SegmentPictureTest() {
    Export("{unet: {image: [8, 8, 3], channels_out: 3, base: 4, depth: 1}}",
           "{mask_folder: {train: /t, masks: /m}}");
    auto network = PictureNetwork::Load(weights_file(), spec_, {}, PictureAnswer::kClassOfEachPixel,
                                        MakeReferenceBackend({}));
    EXPECT_TRUE(network.ok()) << network.status();
    network_ = *std::move(network);
  }
  Picture Mask(const Picture& picture) const {
    const auto mask = SegmentPicture(*network_, picture);
    EXPECT_TRUE(mask.ok()) << mask.status();
    return mask.value_or(Picture());
  }
  std::unique_ptr<PictureNetwork> network_;
};

TEST_F(SegmentPictureTest, TakesTheLikeliestClassOfEachPixel) {
  const Picture picture = MadeUpPicture(8, 8, 3);
  const std::vector<float> logits = (*network_->Run(std::vector{picture}))[0];
  const Picture mask = Mask(picture);
  ASSERT_EQ(mask.bytes.size(), 64u);
  bool differ = false;
  for (size_t i = 0; i < 64; ++i) {
    const auto first = logits.begin() + static_cast<ptrdiff_t>(3 * i);
    EXPECT_EQ(mask.bytes[i], std::max_element(first, first + 3) - first) << i;
    differ = differ || mask.bytes[i] != mask.bytes[0];
  }
  EXPECT_TRUE(differ) << "a mask of one class would tell nothing";
}

TEST_F(SegmentPictureTest, LooksAtAllOfAWidePicturePartByPart) {
  const Picture wide = MadeUpPicture(8, 20, 3);
  const Picture mask = Mask(wide);
  ASSERT_EQ(mask.width, 20);
  for (const int64_t left : {0, 8, 12}) {
    const Picture part = Mask(Crop(wide, {.left = left, .height = 8, .width = 8}));
    const int64_t end = left == 8 ? 12 : left + 8;  // the last part covers the rest again
    for (int64_t x = left; x < end; ++x) {
      EXPECT_EQ(mask.row(3)[x], part.row(3)[x - left]) << left << " " << x;
    }
  }
}

TEST_F(SegmentPictureTest, AnswersInThePicturesOwnSize) {
  const Picture mask = Mask(MadeUpPicture(24, 24, 3));
  EXPECT_EQ(mask.height, 24);
  EXPECT_EQ(mask.width, 24);
  for (int64_t y = 0; y < 24; ++y) {
    for (int64_t x = 0; x < 24; ++x) EXPECT_EQ(mask.row(y)[x], mask.row(y / 3 * 3)[x / 3 * 3]);
  }
}

TEST_F(SegmentPictureTest, RefusesAThread) {
  EXPECT_THAT(std::string(SegmentPicture(*network_, MadeUpPicture(300, 2, 3)).status().message()),
              HasSubstr("a picture of 2 x 300 pixels: one side is more than 32 times the other"));
}

}  // namespace
}  // namespace stagecoach
