// What convolutions take on a processor, counted by hand.
#include <string>

#include "base/errors/check.h"
#include "devices/host/describe.h"
#include "gtest/gtest.h"
#include "operations/attributes.h"
#include "operations/images/convolution.h"

namespace stagecoach {
namespace {

constexpr HostProfile kBelowAvx512 = {.avx512 = false};

// A convolution that makes as many places as the image has pixels.
struct Window {
  int64_t side = 1, in = 1, out = 1, kernel = 3;

  ValueType image() const { return ActivationType({side, side, in}); }
  ValueType places() const { return ActivationType({side, side, out}); }
  Shape weight() const { return {out, kernel, kernel, in}; }
  ConvolutionSteps steps() const { return {.padding = {kernel / 2, kernel / 2}}; }

  CallDescription Forward(int64_t samples, const HostProfile& host, DType dtype) const {
    const Call call = {.operation = "convolution",
                       .attributes = ToAttributes(ConvolutionAttributes{.steps = steps()})};
    return DescribeOnHost(host, call,
                          {{image(), WeightType(Element::kActivation, weight())}, {places()}, {}},
                          samples, dtype);
  }
  CallDescription InputGradient(int64_t samples, const HostProfile& host, DType dtype) const {
    const Call call = {.operation = "convolution_input_gradient",
                       .attributes = ToAttributes(ConvolutionInputGradientAttributes{
                           .steps = steps(), .image = {side, side}})};
    return DescribeOnHost(host, call,
                          {{places(), WeightType(Element::kActivation, weight())}, {image()}, {}},
                          samples, dtype);
  }
  CallDescription WeightGradient(int64_t samples, const HostProfile& host, DType dtype) const {
    const Call call = {
        .operation = "convolution_weight_gradient",
        .attributes = ToAttributes(ConvolutionWeightGradientAttributes{.steps = steps()})};
    return DescribeOnHost(host, call,
                          {{places(), image()}, {}, {WeightType(Element::kFloat32, weight())}},
                          samples, dtype);
  }
  // Room and shared piece of the two calls that every trained convolution has.
  int64_t Bytes(int64_t samples, const HostProfile& host = {}, DType dtype = DType::kF32) const {
    CallDescription most = Forward(samples, host, dtype);
    const CallDescription gradient = WeightGradient(samples, host, dtype);
    most.Raise(gradient.room, gradient.shared);
    return most.room + most.shared;
  }
};

// A thread's room for so many places that read `row` numbers each. Below AVX-512 the product itself
// takes no scratch.
int64_t Columns(int64_t places, int64_t row) { return (64 << 10) + 4 * places * row; }

TEST(HostConvolutions, HaveSharesOfAWeightsGradientForTheSamples) {
  // From eight samples on there are eight shares, and few samples are cut into as many, of 256
  // places at least.
  const Window stem = {.side = 32, .in = 3, .out = 16};
  const int64_t weight = 4 * 9 * 3 * 16, room = Columns(128, 9 * 3);
  EXPECT_EQ(stem.Bytes(1, kBelowAvx512), 4 * weight + room);
  EXPECT_EQ(stem.Bytes(2, kBelowAvx512), 8 * weight + room);
  EXPECT_EQ(stem.Bytes(3, kBelowAvx512), 6 * weight + room);
  EXPECT_EQ(stem.Bytes(5, kBelowAvx512), 5 * weight + room);
  EXPECT_EQ(stem.Bytes(64, kBelowAvx512), 8 * weight + room);
  EXPECT_EQ(stem.Forward(64, kBelowAvx512, DType::kF32).shared, weight);
  // On 8x8 places four samples make a share.
  const Window cell = {.side = 8, .in = 192, .out = 64, .kernel = 1};
  EXPECT_EQ(cell.Bytes(4, kBelowAvx512), 4 * 192 * 64 + Columns(64, 192));
  EXPECT_EQ(cell.Bytes(8, kBelowAvx512), 2 * 4 * 192 * 64 + Columns(64, 192));
}

// By Winograd's filtering: four images of 16x16 are a call of 64 tiles.
TEST(HostConvolutions, HaveARoomForTheTilesOfWinogradsFiltering) {
  const Window window = {.side = 16, .in = 64, .out = 64};
  const int64_t weight = 4 * 9 * 64 * 64, tile = 4 * 36;
  const auto bytes = [&](int64_t images, int64_t shares) {
    const int64_t operands = 4 * images * 256 * (64 + 64);
    const int64_t room =
        (int64_t{16} << 20) + tile * (64 * 64 + images * 16 * (64 + 64) * 3 / 2) + operands;
    return shares * weight + room + weight;
  };
  EXPECT_EQ(window.Bytes(8), bytes(4, 8));
  EXPECT_EQ(window.Bytes(4), bytes(2, 4)) << "two calls for two threads";
  EXPECT_EQ(window.Bytes(1), bytes(1, 1));
  EXPECT_EQ(window.Bytes(800), bytes(4, 8)) << "and no more";
  EXPECT_EQ(window.Bytes(8, {}, DType::kBF16), bytes(4, 8) + 4 * 4 * 256 * (64 + 64))
      << "operands are widened";
  EXPECT_EQ(window.Forward(8, {}, DType::kF32).way, "winograd");
  EXPECT_EQ(window.Forward(8, kBelowAvx512, DType::kF32).way, "");
}

// Where the library has no kernel for a convolution, a thread takes what 128 places read: 25
// numbers of 512 channels each.
TEST(HostConvolutions, HaveARoomForTheColumnsOfAWideWindow) {
  const Window wide = {.side = 16, .in = 512, .out = 16, .kernel = 5};
  const int64_t weight = 4 * 25 * 512 * 16, columns = Columns(128, 25 * 512);
  EXPECT_EQ(wide.Bytes(1, kBelowAvx512), weight + columns);
  // With AVX-512 the product copies 64 columns of the weight, 1,024 deep.
  EXPECT_EQ(wide.Bytes(1), weight + columns + 1024 + 4 * 64 * 1024);
  const Window small = {.side = 4, .in = 512, .out = 16, .kernel = 5};  // 16 places in all
  EXPECT_EQ(small.Bytes(1, kBelowAvx512), weight + Columns(16, 25 * 512));
}

// Operands are widened, and a share of several calls has a sum beside.
TEST(HostConvolutions, HaveWhatDirectOnesWidenInBfloat16) {
  const Window stem = {.side = 32, .in = 3, .out = 16};
  const int64_t weight = 4 * 9 * 3 * 16, operands = 4 * 32 * 32 * (3 + 16);
  const int64_t room = Columns(128, 9 * 3);
  EXPECT_EQ(stem.Bytes(5, kBelowAvx512, DType::kBF16), 5 * weight + room + 5 * operands + weight);
  EXPECT_EQ(stem.Bytes(4096, kBelowAvx512, DType::kBF16),
            8 * weight + room + (int64_t{16} << 20) + weight);
}

// The channels that a direction makes come in whole lanes.
TEST(HostConvolutions, HaveAPackingForEachDirection) {
  const Window window = {.side = 4, .in = 8, .out = 64};
  const CallDescription forward = window.Forward(1, {}, DType::kF32);
  EXPECT_EQ(forward.kept, 4 * 9 * 64 * 8);
  EXPECT_EQ(forward.shared, forward.kept) << "where it is not kept";
  const CallDescription gradient = window.InputGradient(1, {}, DType::kF32);
  EXPECT_EQ(gradient.kept, 4 * 9 * 64 * 16);
  EXPECT_EQ(gradient.shared, gradient.kept);
  EXPECT_EQ(window.WeightGradient(1, {}, DType::kF32).kept, 0);
  const Window odd = {.side = 4, .in = 24, .out = 24};
  EXPECT_EQ(odd.Forward(1, {}, DType::kF32).kept, 4 * 9 * 32 * 32) << "24 channels as 32 are";
}

// Three groups of three channels made and two read.
TEST(HostConvolutions, HaveSharesInWholeLanesOfEachGroup) {
  const Call call = {.operation = "convolution_weight_gradient",
                     .attributes = ToAttributes(ConvolutionWeightGradientAttributes{
                         .steps = {.padding = {1, 1}, .groups = 3}})};
  const CallTypes types = {{ActivationType({19, 17, 9}), ActivationType({19, 17, 6})},
                           {},
                           {WeightType(Element::kFloat32, {9, 3, 3, 2})}};
  EXPECT_EQ(DescribeOnHost({}, call, types, 11, DType::kF32).shared, 6 * 3 * 16 * 16 * 9 * 4);
}

// The operands of a large image in bfloat16 are too many for a call: its gradient is made in
// float32 by columns.
TEST(HostConvolutions, HaveARoomForTheWholeGradientOfALargeImageInBfloat16) {
  const Window large = {.side = 1024, .in = 8, .out = 1, .kernel = 1};
  EXPECT_EQ(large.InputGradient(1, kBelowAvx512, DType::kBF16).room,
            Columns(1024, 8) + 4 * 1024 * 1024 * 8);
}

}  // namespace
}  // namespace stagecoach
