// Each primitive that is taken from oneDNN stays within its buffers and computes the right numbers,
// over a table of shapes, on each instruction set that the processor has.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "stage/backends/cpu/convolution/convolution_trial_testing.h"
#include "stage/backends/cpu/primitives/onednn.h"
#include "stage/backends/cpu/products/product_trial_testing.h"
#include "stage/backends/cpu/testing/instruction_sets.h"

namespace stagecoach::cpu {
namespace {

constexpr GuardedSide kSides[] = {GuardedSide::kBehind, GuardedSide::kBefore};

ConvolutionCase Square(int64_t samples, int64_t side, int64_t in, int64_t window, int64_t stride,
                       int64_t out, int64_t groups = 1) {
  const int64_t padding = window / 2, places = (side + 2 * padding - window) / stride + 1;
  return {.shape = {{samples, side, side, in, places, places, window, window, stride, stride,
                     padding, padding, 1, 1},
                    out,
                    groups}};
}

// Blocks and tails of channels and of places, one image that is cut into rows and several that are
// not: oneDNN writes behind its scratch where a call has enough places for its caches.
void AddPointwise(std::vector<ConvolutionCase>& cases) {
  for (const int64_t in : {1, 3, 4, 7, 8, 12, 15, 16, 24, 40}) {
    for (const int64_t out : {1, 8, 16, 40}) {
      for (const int64_t stride : {1, 2}) {
        cases.push_back(Square(1, 8, in, 1, stride, out));
        cases.push_back(Square(1, 48, in, 1, stride, out));
      }
    }
    cases.push_back(Square(8, 64, in, 1, 2, 8));
    cases.push_back(Square(1, 192, in, 1, 2, 16));
    cases.push_back(Square(2, 66, in, 1, 3, 24));
  }
}

std::vector<ConvolutionCase> NamedConvolutions() {
  std::vector<ConvolutionCase> cases;
  AddPointwise(cases);
  for (const int64_t in : {3, 8, 16, 24}) {
    for (const int64_t out : {3, 16, 24}) {
      for (const int64_t window : {3, 5, 7}) {
        for (const int64_t stride : {1, 2}) cases.push_back(Square(2, 17, in, window, stride, out));
      }
      cases.push_back(Square(1, 40, in, 3, 1, out));
      cases.push_back(Square(1, 40, in, 3, 2, out));
    }
  }
  for (const int64_t channels : {8, 13, 16, 32}) {
    for (const int64_t stride : {1, 2}) {
      cases.push_back(Square(3, 15, channels, 3, stride, channels, channels));
      cases.push_back(Square(2, 21, 4 * channels, 3, stride, 2 * channels, 2));
      cases.push_back(Square(1, 64, 2 * channels, 1, stride, 2 * channels, 2));
    }
  }
  for (const int64_t channels : {32, 48}) cases.push_back(Square(3, 16, channels, 3, 1, 32));
  for (size_t i = 0; i < cases.size(); i += 2) cases[i].bias = true;
  return cases;
}

// Of any shape, but small; a padding behind the last pixel is what the number of places makes of
// it.
ConvolutionCase AnyConvolution(std::mt19937_64& random) {
  const auto any = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random() % static_cast<uint64_t>(most - least + 1));
  };
  constexpr int64_t kChannels[] = {1, 3, 4, 5, 8, 11, 12, 16, 17, 24, 31, 32, 48, 64};
  const auto channels = [&] { return kChannels[any(0, std::size(kChannels) - 1)]; };
  const int64_t groups = any(0, 3) == 0 ? any(2, 4) : 1;
  ConvolutionShape s = {};
  WindowShape& w = s.window;
  s.groups = groups;
  w.channels = groups * channels();
  s.out = groups * channels();
  if (any(0, 5) == 0) s.groups = s.out = w.channels;
  w.samples = any(1, 4);
  const auto extent = [&](int64_t& side, int64_t& size, int64_t& stride, int64_t& padding,
                          int64_t& dilation, int64_t& places) {
    size = any(0, 2) == 0 ? 1 : any(1, 5);
    stride = any(1, 3);
    dilation = any(0, 3) == 0 ? 2 : 1;
    padding = any(0, size - 1);
    const int64_t reach = (size - 1) * dilation + 1;
    side = std::max(any(1, 50), reach);
    places = (side + 2 * padding - reach) / stride + 1;
  };
  extent(w.height, w.size_height, w.stride_height, w.padding_height, w.dilation_height,
         w.places_height);
  extent(w.width, w.size_width, w.stride_width, w.padding_width, w.dilation_width, w.places_width);
  return {.shape = s, .bias = any(0, 1) == 1};
}

struct Found {
  int tried = 0;
  std::vector<std::string> wrong;
};

void TryConvolution(const ConvolutionCase& c, Found& found) {
  // Plain loops take long.
  if (ConvolutionSizes(c.shape).flops * static_cast<double>(c.shape.window.samples) > 2e7) return;
  for (const ConvolutionAlgorithm algorithm :
       {ConvolutionAlgorithm::kDirect, ConvolutionAlgorithm::kWinograd}) {
    for (const ConvolutionPart part : {ConvolutionPart::kForward, ConvolutionPart::kInputGradient,
                                       ConvolutionPart::kWeightGradient}) {
      if (!ConvolutionTrial::IsTaken(c, part, algorithm)) continue;
      ConvolutionTrial trial(c, part, algorithm);
      for (const GuardedSide side : kSides) {
        ++found.tried;
        const std::string wrong = trial.Run(side);
        if (!wrong.empty()) {
          found.wrong.push_back(absl::StrCat(NameOf(c, part, algorithm), ": ", wrong));
          break;
        }
      }
    }
  }
}

void TryProduct(MatmulShape shape, Found& found) {
  const SerialOpenMp serial;
  const ProductNumbers numbers(shape);
  for (const bool packed : {false, true}) {
    shape.packed = packed;
    const Matmul product(shape);
    for (const GuardedSide side : kSides) {
      ++found.tried;
      const std::string wrong = RunProduct(product, shape, numbers, side);
      if (wrong.empty()) continue;
      found.wrong.push_back(absl::StrCat(NameOf(shape), ": ", wrong));
      break;
    }
  }
}

// The forms in which layers and columns of convolutions ask for products.
void TryProducts(int64_t m, int64_t k, int64_t n, bool bfloat16, Found& found) {
  for (const int64_t gap : {0, 5}) {  // between rows, where an operand is a part of a wider one
    TryProduct({.m = m,
                .k = k,
                .n = n,
                .a = {k + gap, 1},
                .b = {n + gap, 1},
                .c_row = n + gap,
                .bias = gap == 0,
                .bfloat16 = bfloat16},
               found);
    TryProduct({.m = m,
                .k = k,
                .n = n,
                .a = {k + gap, 1},
                .b = {1, k},
                .c_row = n + gap,
                .bias = gap > 0,
                .bfloat16 = bfloat16},
               found);
    TryProduct({.m = m,
                .k = k,
                .n = n,
                .a = {1, m + gap},
                .b = {n, 1},
                .c_row = n,
                .accumulate = true,
                .bfloat16 = bfloat16},
               found);
  }
}

void Try(Found& found) {
  std::mt19937_64 random(1);
  const int any = 40;
  for (const ConvolutionCase& c : NamedConvolutions()) TryConvolution(c, found);
  for (int i = 0; i < any; ++i) TryConvolution(AnyConvolution(random), found);
  for (const bool bfloat16 : {false, true}) {
    if (bfloat16 && !OneDnnHasBfloat16()) continue;
    for (const int64_t m : {1, 7, 17, 96}) {
      for (const int64_t k : {1, 16, 33, 130}) {
        for (const int64_t n : {1, 9, 16, 65}) TryProducts(m, k, n, bfloat16, found);
      }
    }
    const auto size = [&] { return 1 + static_cast<int64_t>(random() % 150); };
    for (int i = 0; i < any; ++i) {
      const int64_t m = size(), k = size(), n = size();
      TryProducts(m, k, n, bfloat16, found);
    }
  }
}

bool Tried() {
  Found found;
  Try(found);
  for (const std::string& wrong : found.wrong) std::cerr << wrong << "\n";
  std::cerr << "tried " << found.tried << "\n";
  return found.wrong.empty();
}

class OneDnnMemoryDeathTest : public InstructionsDeathTest {};

TEST_P(OneDnnMemoryDeathTest, EveryPrimitiveStaysWithinItsBuffersAndComputesTheRightNumbers) {
  EXPECT_EXIT(TryOn(GetParam(), Tried), testing::ExitedWithCode(0),
              "tried [1-9][0-9]+\n|no such instructions here");
}

INSTANTIATE_TEST_SUITE_P(On, OneDnnMemoryDeathTest, AllInstructions(), NameOfSet);

}  // namespace
}  // namespace stagecoach::cpu
