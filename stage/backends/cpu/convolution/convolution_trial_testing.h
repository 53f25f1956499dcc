// ConvolutionTrial: a part of a convolution in guarded memory, by the calls that a kernel makes,
// beside plain loops.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_CONVOLUTION_CONVOLUTION_TRIAL_TESTING_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_CONVOLUTION_CONVOLUTION_TRIAL_TESTING_H_

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "stage/backends/cpu/convolution/convolution_calls.h"
#include "stage/backends/cpu/primitives/worker_pool.h"
#include "stage/backends/cpu/testing/guarded_numbers.h"

namespace stagecoach::cpu {

struct ConvolutionCase {
  ConvolutionShape shape;  // samples too
  bool bias = false;
};

inline std::string NameOf(const ConvolutionCase& c, ConvolutionPart part,
                          ConvolutionAlgorithm algorithm) {
  const WindowShape& w = c.shape.window;
  constexpr const char* kParts[] = {"forward", "input gradient", "weight gradient"};
  return absl::StrCat(algorithm == ConvolutionAlgorithm::kWinograd ? "Winograd " : "",
                      kParts[static_cast<int>(part)], " of ", w.samples, " images ", w.height, "x",
                      w.width, "x", w.channels, ", window ", w.size_height, "x", w.size_width,
                      ", stride ", w.stride_height, "x", w.stride_width, ", padding ",
                      w.padding_height, "x", w.padding_width, ", dilation ", w.dilation_height, "x",
                      w.dilation_width, ", out ", c.shape.out, ", groups ", c.shape.groups,
                      c.bias ? ", bias" : "");
}

// Calls f(the pixel's first element, the weight's, the place's) for every product of a pixel's channels of a group.
template <typename F>
void ForEachPixel(const ConvolutionShape& s, F f) {
  const WindowShape& w = s.window;
  const int64_t in = w.channels / s.groups, out = s.out / s.groups;
  const auto pixel_at = [&](int64_t place, int64_t tap, int64_t stride, int64_t dilation,
                            int64_t padding) { return place * stride + tap * dilation - padding; };
  for (int64_t place = 0; place < w.samples * w.places_height * w.places_width; ++place) {
    const int64_t n = place / (w.places_height * w.places_width);
    const int64_t py = place / w.places_width % w.places_height, px = place % w.places_width;
    for (int64_t tap = 0; tap < w.size_height * w.size_width; ++tap) {
      const int64_t y =
          pixel_at(py, tap / w.size_width, w.stride_height, w.dilation_height, w.padding_height);
      const int64_t x =
          pixel_at(px, tap % w.size_width, w.stride_width, w.dilation_width, w.padding_width);
      if (y < 0 || y >= w.height || x < 0 || x >= w.width) continue;
      const int64_t pixel = ((n * w.height + y) * w.width + x) * w.channels;
      for (int64_t o = 0; o < s.out; ++o) {
        const int64_t weight = (o * w.size_height * w.size_width + tap) * in;
        f(pixel + o / out * in, weight, place * s.out + o);
      }
    }
  }
}

// A part's operands, and the expected values of its result.
struct ConvolutionNumbers {
  Numbers image, weight, bias, places;

  ConvolutionNumbers(const ConvolutionCase& c, ConvolutionPart part)
      : image(SizeOf(c, true), part == ConvolutionPart::kInputGradient ? 0 : 1),
        weight(c.shape.out * c.shape.window.size_height * c.shape.window.size_width *
                   (c.shape.window.channels / c.shape.groups),
               part == ConvolutionPart::kWeightGradient ? 0 : 2),
        bias(c.shape.out, 3),
        places(SizeOf(c, false), part == ConvolutionPart::kForward ? 0 : 4) {
    // Pointers: most of the test's time goes here, in a program that is compiled without much optimization.
    const int64_t in = c.shape.window.channels / c.shape.groups;
    float *const x = image.values.data(), *const w = weight.values.data(),
                 *const y = places.values.data();
    switch (part) {
      case ConvolutionPart::kForward:
        if (c.bias) {
          for (int64_t i = 0; i < places.size(); ++i) places[i] = bias[i % c.shape.out];
        }
        ForEachPixel(c.shape, [=](int64_t pixel, int64_t tap, int64_t place) {
          float sum = y[place];
          for (int64_t i = 0; i < in; ++i) sum += x[pixel + i] * w[tap + i];
          y[place] = sum;
        });
        break;
      case ConvolutionPart::kInputGradient:
        ForEachPixel(c.shape, [=](int64_t pixel, int64_t tap, int64_t place) {
          const float gradient = y[place];
          for (int64_t i = 0; i < in; ++i) x[pixel + i] += gradient * w[tap + i];
        });
        break;
      case ConvolutionPart::kWeightGradient:
        ForEachPixel(c.shape, [=](int64_t pixel, int64_t tap, int64_t place) {
          const float gradient = y[place];
          for (int64_t i = 0; i < in; ++i) w[tap + i] += x[pixel + i] * gradient;
        });
        break;
    }
  }

 private:
  static int64_t SizeOf(const ConvolutionCase& c, bool image) {
    const ConvolutionSizes sizes(c.shape);
    return c.shape.window.samples * (image ? sizes.image : sizes.out);
  }
};

// Run makes the calls of a part (convolution_calls.h). It returns the first fault, or empty.
class ConvolutionTrial {
 public:
  ConvolutionTrial(const ConvolutionCase& c, ConvolutionPart part, ConvolutionAlgorithm algorithm)
      : case_(c),
        part_(part),
        tolerance_(algorithm == ConvolutionAlgorithm::kWinograd ? 1e-2f : 0.0f),
        direct_({.part = part, .shape = OfOne(c.shape), .bias = c.bias, .algorithm = algorithm}),
        numbers_(c, part) {}

  static bool IsTaken(const ConvolutionCase& c, ConvolutionPart part,
                      ConvolutionAlgorithm algorithm) {
    return DirectConvolutions(
               {.part = part, .shape = OfOne(c.shape), .bias = c.bias, .algorithm = algorithm})
        .Of(1)
        .fast();
  }

  std::string Run(GuardedSide side) {
    const ConvolutionSizes sizes(case_.shape);
    const int64_t samples = case_.shape.window.samples;
    const ConvolutionCalls calls =
        part_ == ConvolutionPart::kWeightGradient
            ? ConvolutionCalls::OfShares(direct_, sizes, samples, false)
            : ConvolutionCalls::OfOutputs(direct_, sizes, samples, false);
    const SerialOpenMp serial;
    const Numbers nothing(numbers_.weight.size());
    const bool sums = part_ == ConvolutionPart::kWeightGradient;
    const GuardedNumbers weight("weight", sums ? nothing : numbers_.weight, 0,
                                numbers_.weight.size(), side);
    const GuardedMemory packed("packed weight", calls.first().packed_bytes(), side);
    if (!sums) {
      const auto outside =
          GuardedMemory::Outside([&] { calls.first().Pack(weight.data(), packed.data()); });
      if (!outside.empty()) return absl::StrCat("Pack ", outside);
    }
    for (int64_t task = 0; task < calls.tasks(); ++task) {
      for (const ConvolutionCall& call : calls.Task(task)) {
        std::string wrong = RunOne(call, packed, weight, side);
        if (!wrong.empty()) return wrong;
      }
    }
    if (!sums) return "";
    return Difference(weight.data(), numbers_.weight.values.data(), numbers_.weight.size(),
                      tolerance_);
  }

 private:
  static ConvolutionShape OfOne(ConvolutionShape shape) {
    shape.window.samples = 1;
    return shape;
  }

  std::string RunOne(const ConvolutionCall& call, const GuardedMemory& packed,
                     const GuardedMemory& weight, GuardedSide side) {
    const GuardedNumbers bias("bias", numbers_.bias, 0, numbers_.bias.size(), side);
    const int64_t images = call.image_elements, places_size = call.places_elements;
    const GuardedNumbers image("image", numbers_.image, call.image, images, side);
    const GuardedNumbers places("places", numbers_.places, call.places, places_size, side);
    if (part_ == ConvolutionPart::kForward) std::fill_n(places.data(), places_size, NAN);
    if (part_ == ConvolutionPart::kInputGradient) std::fill_n(image.data(), images, NAN);
    const GuardedMemory scratch("scratch", call.one->scratch_bytes(), side);
    std::string outside = GuardedMemory::Outside([&] {
      call.one->Execute(image.data(), packed.data(), case_.bias ? bias.data() : nullptr,
                        places.data(), scratch.data());
      if (part_ == ConvolutionPart::kWeightGradient) {
        call.one->AddUnpacked(packed.data(), weight.data());
      }
    });
    if (!outside.empty()) return outside;
    if (part_ == ConvolutionPart::kForward) {
      return Difference(places.data(), numbers_.places.values.data() + call.places, places_size,
                        tolerance_);
    }
    if (part_ == ConvolutionPart::kInputGradient) {
      return Difference(image.data(), numbers_.image.values.data() + call.image, images,
                        tolerance_);
    }
    return "";
  }

  const ConvolutionCase case_;
  const ConvolutionPart part_;
  const float tolerance_;
  DirectConvolutions direct_;
  const ConvolutionNumbers numbers_;
};

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_CONVOLUTION_CONVOLUTION_TRIAL_TESTING_H_
