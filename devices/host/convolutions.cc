// Convolutions: the weight in the library's packing, shares of its gradient, Winograd's tiles
// (operations/images/winograd.h), operands widened from bfloat16, and columns where the library has
// no fast kernel.
#include <algorithm>

#include "base/errors/check.h"
#include "base/numbers/saturate.h"
#include "devices/host/host_calls.h"
#include "devices/host/product_scratch.h"
#include "operations/attributes.h"
#include "operations/images/convolution.h"
#include "operations/images/winograd.h"

namespace stagecoach {
namespace {

constexpr int64_t kLibraryNotes = int64_t{16} << 10;
constexpr int64_t kBesideColumnsBytes = 64 << 10;  // the product's own, sums of a bias
constexpr int64_t kLanes = 16;  // channels that the library packs beside each other, at most

int64_t WholeLanes(int64_t channels) { return SaturatingRoundUp(channels, kLanes); }

// A convolution of any direction: `image` is x or dx, `places` y or dy.
struct ConvolutionForm {
  ConvolutionForm(const ConvolutionSteps& steps, const ValueType& image, const ValueType& weight,
                  const ValueType& places)
      : steps(steps),
        weight(weight.shape),
        extents{.image = {image.shape[0], image.shape[1]},
                .window = {weight.shape[1], weight.shape[2]},
                .places = {places.shape[0], places.shape[1]},
                .in = image.shape[2],
                .out = places.shape[2]} {}

  int64_t places() const { return extents.places.height * extents.places.width; }
  int64_t image_floats() const { return extents.image.height * extents.image.width * extents.in; }
  int64_t operand_bytes() const {
    return kFloat32Bytes * (image_floats() + places() * extents.out);
  }

  ConvolutionSteps steps;
  Shape weight;  // [out, height, width, in of a group]
  ConvolutionExtents extents;
};

// A packed weight. Channels that are made come in whole lanes, and those that are read where they
// fill one; with groups only a single channel each is packed beside others. makes_places: the call
// makes places of an image; else an image of places.
int64_t PackedBytes(const ConvolutionForm& form, bool makes_places) {
  const int64_t groups = form.steps.groups;
  const int64_t taps = form.weight[1] * form.weight[2] * kFloat32Bytes;
  const int64_t out = form.weight[0] / std::max<int64_t>(groups, 1), in = form.weight[3];
  if (groups > 1 && out == 1 && in == 1) return SaturatingMultiply(taps, WholeLanes(groups));
  if (groups > 1) return SaturatingMultiply(taps, SaturatingMultiply(form.weight[0], in));
  const auto read = [](int64_t channels) {
    return channels < kLanes ? channels : WholeLanes(channels);
  };
  const int64_t channels = makes_places ? SaturatingMultiply(WholeLanes(out), read(in))
                                        : SaturatingMultiply(read(out), WholeLanes(in));
  return SaturatingMultiply(taps, channels);
}

// A weight's gradient in the library's packing. With groups the channels of each come in whole
// lanes.
int64_t ShareBytes(const ConvolutionForm& form) {
  const int64_t groups = form.steps.groups;
  if (groups == 1) return PackedBytes(form, true);
  const int64_t out = WholeLanes(form.weight[0] / groups), in = WholeLanes(form.weight[3]);
  if (form.weight[0] == groups && form.weight[3] == 1) return PackedBytes(form, true);
  const int64_t taps = form.weight[1] * form.weight[2] * kFloat32Bytes;
  return SaturatingMultiply(taps, SaturatingMultiply(groups, SaturatingMultiply(out, in)));
}

// A thread's room for a product of columns, which a convolution is where the library has no kernel
// of its own for it: rows of places, 128 at most or one row, with all that they read; and the
// scratch of the largest of the three products.
int64_t ColumnBytes(const ConvolutionForm& form, const HostProfile& host) {
  constexpr int64_t kPlaces = 128;
  const int64_t block = std::min(form.places(), std::max(kPlaces, form.extents.places.width));
  const int64_t row = form.weight[1] * form.weight[2] * form.weight[3];
  const int64_t out = form.weight[0] / std::max<int64_t>(form.steps.groups, 1);
  const int64_t scratch =
      std::max({ProductScratchBytes({.m = block, .k = row, .n = out}, host),
                ProductScratchBytes({.m = block, .k = out, .n = row}, host),
                ProductScratchBytes({.m = out, .k = block, .n = row, .turned = true}, host)});
  return SaturatingAdd(SaturatingAdd(kBesideColumnsBytes, scratch),
                       SaturatingMultiply(kFloat32Bytes * block, row));
}

// Upper bound of the library's scratch for a call: notes, and a copy of the pixels that a 1x1 with
// strides reads.
int64_t LibraryScratch(const ConvolutionForm& form) {
  if (form.extents.window != Plane{1, 1} || form.steps.stride == Plane{1, 1}) return kLibraryNotes;
  const int64_t pixels = SaturatingMultiply(form.extents.places.height, form.extents.places.width);
  return SaturatingAdd(kLibraryNotes,
                       SaturatingMultiply(pixels, kFloat32Bytes * WholeLanes(form.extents.in)));
}

// Whether a share of a weight's gradient has several calls, as a call shows no progress and must
// end soon.
bool HasSeveralCalls(const ConvolutionForm& form, int64_t samples) {
  constexpr double kMostCallFlops = 2e10;
  const double flops =
      2.0 * static_cast<double>(form.weight.elements()) * static_cast<double>(form.places());
  return flops * static_cast<double>(SamplesOfShare(samples, form.places())) > kMostCallFlops;
}

bool GoesByWinograd(const ConvolutionForm& form, const HostProfile& host) {
  return host.avx512 && SuitsWinograd(form.steps, form.extents);
}

// A call by Winograd's filtering: its tiles, and in bfloat16 its operands widened.
int64_t WinogradBytes(const ConvolutionForm& form, int64_t samples, bool widens) {
  const int64_t images = WinogradImages(samples, form.places());
  const int64_t room = WinogradRoomBytes(form.extents, images);
  if (!widens) return room;
  return SaturatingAdd(room, SaturatingMultiply(images, form.operand_bytes()));
}

// In bfloat16, float copies of a call's operands.
int64_t WidenedBytes(const ConvolutionForm& form, int64_t samples) {
  return std::min(kMostWidenedBytes, SaturatingMultiply(samples, form.operand_bytes()));
}

// A call's room, of any direction.
int64_t RoomBytes(const HostCall& of, const ConvolutionForm& form) {
  if (GoesByWinograd(form, of.host)) return WinogradBytes(form, of.samples, of.narrow);
  const int64_t room = std::max(LibraryScratch(form), ColumnBytes(form, of.host));
  return of.narrow ? SaturatingAdd(room, WidenedBytes(form, of.samples)) : room;
}

// room: of the call. shared: packed weights; in bfloat16 the weight in floats is there beside one.
CallDescription DescribeConvolution(const HostCall& of, const ConvolutionForm& form, int64_t room,
                                    int64_t packed) {
  CallDescription description = DescribeRest(of);
  if (GoesByWinograd(form, of.host)) description.way = "winograd";
  const int64_t widened = of.narrow ? form.weight.elements() * kFloat32Bytes : 0;
  description.Raise(room, SaturatingAdd(packed, widened));
  return description;
}

// y of x and a weight, or dx of dy and a weight.
CallDescription DescribeWithWeight(const HostCall& of, const ConvolutionForm& form,
                                   bool makes_places) {
  const int64_t packed = PackedBytes(form, makes_places);
  CallDescription description = DescribeConvolution(of, form, RoomBytes(of, form), packed);
  description.kept = packed;
  return description;
}

CallDescription DescribeForward(const HostCall& of) {
  const auto attributes = *FromAttributes<ConvolutionAttributes>(of.call.attributes);
  const ConvolutionForm form(attributes.steps, of.types.inputs[0], of.types.inputs[1],
                             of.types.outputs[0]);
  return DescribeWithWeight(of, form, true);
}

CallDescription DescribeImage(const HostCall& of) {
  const auto attributes = *FromAttributes<ConvolutionInputGradientAttributes>(of.call.attributes);
  const ConvolutionForm form(attributes.steps, of.types.outputs[0], of.types.inputs[1],
                             of.types.inputs[0]);
  CallDescription description = DescribeWithWeight(of, form, false);
  if (of.narrow && form.operand_bytes() > kMostWidenedBytes) {
    // By columns, which makes the whole image in float32.
    const int64_t image = kFloat32Bytes * form.image_floats();
    description.Raise(SaturatingAdd(ColumnBytes(form, of.host), image), 0);
  }
  return description;
}

// Shares are packed weights, and so is the sum that a share of several calls has beside.
CallDescription DescribeWeights(const HostCall& of) {
  const auto attributes = *FromAttributes<ConvolutionWeightGradientAttributes>(of.call.attributes);
  const ConvolutionForm form(attributes.steps, of.types.inputs[1], of.types.adds[0],
                             of.types.inputs[0]);
  const int64_t share = ShareBytes(form);
  const bool sums = GoesByWinograd(form, of.host) || of.narrow || HasSeveralCalls(form, of.samples);
  const int64_t room = SaturatingAdd(RoomBytes(of, form), sums ? share : 0);
  CallDescription description = DescribeConvolution(of, form, room, share);
  const int64_t shares = SharesOfSamples(of.samples, form.places());
  description.Raise(0, SaturatingMultiply(share, shares));
  return description;
}

}  // namespace

HostEntries ConvolutionsOnHost() {
  return {{"convolution", DescribeForward},
          {"convolution_input_gradient", DescribeImage},
          {"convolution_weight_gradient", DescribeWeights},
          {"transposed_convolution", DescribeImage}};
}

}  // namespace stagecoach
