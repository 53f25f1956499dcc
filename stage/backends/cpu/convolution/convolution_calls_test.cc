// How convolutions are cut into calls and tasks: every element once, and work for several threads
// where images are few.
#include "stage/backends/cpu/convolution/convolution_calls.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace stagecoach::cpu {
namespace {

// 3x3 with a padding of 1.
ConvolutionShape Square(int64_t side, int64_t channels, int64_t stride = 1) {
  const int64_t places = (side - 1) / stride + 1;
  return {{0, side, side, channels, places, places, 3, 3, stride, stride, 1, 1, 1, 1}, channels, 1};
}

struct Case {
  ConvolutionPart part;
  ConvolutionShape shape;
  int64_t samples;
};

ConvolutionCalls CallsOf(DirectConvolutions& direct, const Case& c, bool widens) {
  direct.Of(1);
  const ConvolutionSizes sizes(c.shape);
  return c.part == ConvolutionPart::kWeightGradient
             ? ConvolutionCalls::OfShares(direct, sizes, c.samples, widens)
             : ConvolutionCalls::OfOutputs(direct, sizes, c.samples, widens);
}

int64_t TasksOf(const Case& c) {
  DirectConvolutions direct({.part = c.part, .shape = c.shape});
  return CallsOf(direct, c, false).tasks();
}

constexpr auto kForward = ConvolutionPart::kForward;
constexpr auto kInput = ConvolutionPart::kInputGradient;
constexpr auto kWeight = ConvolutionPart::kWeightGradient;

// Seen: a micro-batch of one image was computed by one thread, however many the stage had.
TEST(ConvolutionCalls, FewImagesAreWorkForSeveralThreads) {
  for (const ConvolutionPart part : {kForward, kInput}) {
    for (const int64_t samples : {1, 2, 3, 4, 7}) {
      EXPECT_GE(TasksOf({part, Square(32, 64), samples}), 8) << samples << " images";
      EXPECT_GE(TasksOf({part, Square(64, 64, 2), samples}), 8) << samples << " images, stride 2";
    }
    EXPECT_EQ(TasksOf({part, Square(32, 64), 8}), 8) << "images are enough";
    EXPECT_EQ(TasksOf({part, Square(32, 64), 21}), 21);
    EXPECT_EQ(TasksOf({part, Square(4, 512), 1}), 1) << "to read the weight takes longest";
    EXPECT_EQ(TasksOf({part, Square(8, 16), 1}), 1) << "too little work";
  }
  EXPECT_EQ(TasksOf({kWeight, Square(32, 64), 1}), 4) << "shares of 256 places";
  EXPECT_EQ(TasksOf({kWeight, Square(32, 64), 3}), 6) << "eight shares at most";
  EXPECT_EQ(TasksOf({kWeight, Square(16, 64), 4}), 4);
}

TEST(ConvolutionCalls, WriteEachElementOnceInOrder) {
  for (const ConvolutionPart part : {kForward, kInput}) {
    for (const ConvolutionShape& shape : {Square(32, 64), Square(33, 32, 2), Square(7, 16)}) {
      for (const int64_t samples : {1, 2, 5, 9, 21}) {
        DirectConvolutions direct({.part = part, .shape = shape});
        const ConvolutionCalls calls = CallsOf(direct, {part, shape, samples}, false);
        const ConvolutionSizes sizes(shape);
        int64_t image = 0, places = 0;
        for (int64_t task = 0; task < calls.tasks(); ++task) {
          for (const ConvolutionCall& call : calls.Task(task)) {
            if (part == kForward) {
              EXPECT_EQ(call.places, places);
              places += call.places_elements;
            } else {
              EXPECT_EQ(call.image, image);
              image += call.image_elements;
            }
            EXPECT_LE(call.image + call.image_elements, samples * sizes.image);
            EXPECT_LE(call.places + call.places_elements, samples * sizes.out);
          }
        }
        EXPECT_EQ(part == kForward ? places : image,
                  samples * (part == kForward ? sizes.out : sizes.image));
      }
    }
  }
}

}  // namespace
}  // namespace stagecoach::cpu
