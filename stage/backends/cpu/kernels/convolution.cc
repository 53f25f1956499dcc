// By oneDNN's own convolutions where they are fast, else by products of columns
// (stage/backends/cpu/convolution/column_convolution.h). Bfloat16 is widened call by call, and
// rounded at the end.
#include "operations/images/convolution.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "base/threads/progress.h"
#include "operations/images/winograd.h"
#include "stage/backends/call_shapes.h"
#include "stage/backends/cpu/column_sums.h"
#include "stage/backends/cpu/convolution/column_convolution.h"
#include "stage/backends/cpu/convolution/convolution_calls.h"
#include "stage/backends/cpu/convolution/convolution_room.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/primitives/direct_convolution.h"
#include "stage/backends/cpu/primitives/worker_pool.h"

namespace stagecoach::cpu {
namespace {

ConvolutionExtents ExtentsOf(const ConvolutionShape& s) {
  const WindowShape& w = s.window;
  return {.image = {w.height, w.width},
          .window = {w.size_height, w.size_width},
          .places = {w.places_height, w.places_width},
          .in = w.channels,
          .out = s.out};
}
ConvolutionSteps StepsOf(const ConvolutionShape& s) {
  const WindowShape& w = s.window;
  return {.stride = {w.stride_height, w.stride_width},
          .padding = {w.padding_height, w.padding_width},
          .dilation = {w.dilation_height, w.dilation_width},
          .groups = s.groups};
}

// Null where the shape is not for it, oneDNN has no such way here, or one that takes more than a
// plan counts.
std::shared_ptr<DirectConvolutions> WinogradWay(const ConvolutionPacking& packing) {
  const ConvolutionExtents extents = ExtentsOf(packing.shape);
  if (!SuitsWinograd(StepsOf(packing.shape), extents)) return nullptr;
  auto made = std::make_shared<DirectConvolutions>(packing);
  const int64_t places = extents.places.height * extents.places.width;
  const int64_t most = WinogradImages(std::numeric_limits<int32_t>::max(), places);
  for (const int64_t images : {int64_t{1}, most}) {
    const DirectConvolution& way = made->Of(images);
    if (!way.fast() || way.scratch_bytes() > WinogradRoomBytes(extents, images)) return nullptr;
  }
  return made;
}

// Null where columns are the better way.
std::shared_ptr<DirectConvolutions> FastWay(CpuBackend& backend, ConvolutionPart part,
                                            const ConvolutionShape& shape, bool bias,
                                            DType activation) {
  if (backend.convolutions() == Convolutions::kByColumns) return nullptr;
  const ConvolutionSizes sizes(shape);
  if (sizes.image == 0 || sizes.out == 0 || sizes.flops > kMostCallFlops) return nullptr;
  if (activation == DType::kBF16 && sizes.WidenedBytes() > kMostWidened) return nullptr;
  // oneDNN's gradient of single channels takes ten times as long with a window of 5x5 as ours, half
  // as long with 3x3.
  const bool depthwise = shape.groups == shape.window.channels;
  const bool large = std::max(shape.window.size_height, shape.window.size_width) > 3;
  if (part == ConvolutionPart::kWeightGradient && depthwise && large) return nullptr;
  ConvolutionPacking packing = {.part = part, .shape = shape, .bias = bias};
  if (backend.convolutions() != Convolutions::kDirect) {
    packing.algorithm = ConvolutionAlgorithm::kWinograd;
    if (auto winograd = WinogradWay(packing)) return winograd;
    packing.algorithm = ConvolutionAlgorithm::kDirect;
  }
  auto direct = std::make_shared<DirectConvolutions>(packing);
  if (!direct->Of(1).fast()) return nullptr;
  return direct;
}

// The weight packed and a bias as floats; without memory no weight. A parameter's packing is kept
// while its values are the same, another weight's is made for this call alone.
struct PackedWeight {
  const float *weight = nullptr, *bias = nullptr;

  static PackedWeight Of(CpuBackend& backend, const DirectConvolutions& way,
                         const DirectConvolution& direct, const Tensor& weight,
                         const Tensor& bias) {
    const bool kept = backend.packed_weights().KeepsConvolution(weight);
    const int64_t widened = IsBfloat16(weight) ? weight.elements() : 0;
    const int64_t widened_bias = bias.valid() && IsBfloat16(bias) ? bias.elements() : 0;
    const int64_t packed = kept ? 0 : Pieces::Rounded(direct.packed_bytes() / kFloatBytes);
    const int64_t floats = packed + Pieces::Rounded(widened) + Pieces::Rounded(widened_bias);
    float* const room = floats == 0 ? nullptr : backend.ReserveShared(floats * kFloatBytes);
    PackedWeight made;
    if (floats > 0 && room == nullptr) return made;
    Pieces pieces(room);
    float* const packed_here = pieces.Take(packed);
    float* const floats_of_weight = pieces.Take(widened);
    const auto pack = [&](float* target) {
      const SerialOpenMp serial;
      direct.Pack(AsFloats(weight, floats_of_weight), target);
    };
    if (bias.valid()) made.bias = AsFloats(bias, pieces.Take(widened_bias));
    if (kept) {
      made.weight =
          backend.packed_weights().Get(weight, way.packing(), direct.packed_bytes(), pack);
    } else {
      pack(packed_here);
      made.weight = packed_here;
    }
    return made;
  }
};

void RunForward(CpuBackend& backend, DirectConvolutions& direct, const ConvolutionSizes& sizes,
                bool bias, int64_t samples, const KernelArguments& a) {
  if (samples == 0) return;
  const bool widens = IsBfloat16(a.inputs[0]);
  const auto calls = ConvolutionCalls::OfOutputs(direct, sizes, samples, widens);
  const int rooms = backend.ReserveRooms(calls.RoomBytes());
  if (rooms == 0) return;
  const PackedWeight weight =
      PackedWeight::Of(backend, direct, calls.first(), a.inputs[1], bias ? a.inputs[2] : Tensor());
  if (weight.weight == nullptr) return;
  const FloatInput x(a.inputs[0]);
  const FloatOutput y(a.outputs[0]);
  backend.ForEachTask(calls.tasks(), rooms, [&](int64_t task, float* scratch) {
    const ConvolutionCalls::Room room = calls.RoomIn(scratch);
    for (const ConvolutionCall& call : calls.Task(task)) {
      float* const places = y.At(call.places, room.places);
      call.one->Execute(x.Read(call.image, call.image_elements, room.image), weight.weight,
                        weight.bias, places, room.scratch);
      y.Finish(call.places, call.places_elements, places);
      TickProgress();  // a task may take long
    }
  });
}

void RunInputGradient(CpuBackend& backend, DirectConvolutions& direct,
                      const ConvolutionSizes& sizes, int64_t samples, const KernelArguments& a) {
  if (samples == 0) return;
  const bool widens = IsBfloat16(a.inputs[0]);
  const auto calls = ConvolutionCalls::OfOutputs(direct, sizes, samples, widens);
  const int rooms = backend.ReserveRooms(calls.RoomBytes());
  if (rooms == 0) return;
  const PackedWeight weight =
      PackedWeight::Of(backend, direct, calls.first(), a.inputs[1], Tensor());
  if (weight.weight == nullptr) return;
  const FloatInput dy(a.inputs[0]);
  const FloatOutput dx(a.outputs[0]);
  backend.ForEachTask(calls.tasks(), rooms, [&](int64_t task, float* scratch) {
    const ConvolutionCalls::Room room = calls.RoomIn(scratch);
    for (const ConvolutionCall& call : calls.Task(task)) {
      float* const image = dx.At(call.image, room.image);
      call.one->Execute(image, weight.weight, nullptr,
                        dy.Read(call.places, call.places_elements, room.places), room.scratch);
      dx.Finish(call.image, call.image_elements, image);
      TickProgress();
    }
  });
}

// shares[0] adds the others in order.
void SumShares(CpuBackend& backend, float* shares, int64_t each, int64_t count) {
  if (count == 1) return;
  backend.ForEachBlock(each, kElementBlock, [&](int64_t first, int64_t some, int) {
    for (int64_t share = 1; share < count; ++share) {
      AddTo(shares + share * each + first, shares + first, some);
    }
  });
}

void SumPlaces(const ColumnBlock& block) {
  ColumnSums(block.operands[0], block.total, block.rows, block.stride, block.columns);
}

void RunWeightGradient(CpuBackend& backend, DirectConvolutions& direct,
                       const ConvolutionSizes& sizes, int64_t samples, const KernelArguments& a) {
  if (samples == 0) return;
  const bool widens = IsBfloat16(a.inputs[0]);
  const auto calls = ConvolutionCalls::OfShares(direct, sizes, samples, widens);
  const int64_t share = Pieces::Rounded(calls.first().packed_bytes() / kFloatBytes);
  const int rooms = backend.ReserveRooms(calls.RoomBytes(share));
  if (rooms == 0) return;
  float* const shares = backend.ReserveShared(calls.tasks() * share * kFloatBytes);
  if (shares == nullptr) return;
  const FloatInput dy(a.inputs[0]), x(a.inputs[1]);
  backend.ForEachTask(calls.tasks(), rooms, [&](int64_t task, float* scratch) {
    const ConvolutionCalls::Room room = calls.RoomIn(scratch);
    float* const sum = shares + task * share;
    float* target = sum;  // which a call sets
    for (const ConvolutionCall& call : calls.Task(task)) {
      call.one->Execute(x.Read(call.image, call.image_elements, room.image), target, nullptr,
                        dy.Read(call.places, call.places_elements, room.places), room.scratch);
      if (target != sum) AddTo(target, sum, share);
      target = room.sum;
      TickProgress();
    }
  });
  SumShares(backend, shares, share, calls.tasks());
  const SerialOpenMp serial;
  calls.first().AddUnpacked(shares, a.adds[0].data<float>());
}

absl::StatusOr<Kernel> Forward(CpuBackend& backend, const Call& call, const CallTypes& types,
                               DType activation) {
  const auto attributes = AttributesOf<ConvolutionAttributes>(call);
  const ConvolutionShape shape = ForwardShape(attributes.steps, types);
  const auto direct =
      FastWay(backend, ConvolutionPart::kForward, shape, attributes.bias, activation);
  if (direct == nullptr) return ForwardByColumns(backend, shape, attributes.bias);
  return Kernel([&backend, direct, sizes = ConvolutionSizes(shape), bias = attributes.bias](
                    const KernelContext& context, const KernelArguments& a) {
    RunForward(backend, *direct, sizes, bias, context.run.sequences, a);
  });
}

absl::StatusOr<Kernel> InputGradient(CpuBackend& backend, const Call& call, const CallTypes& types,
                                     DType activation) {
  const ConvolutionShape shape =
      InputGradientShape(AttributesOf<ConvolutionInputGradientAttributes>(call).steps, types);
  const auto direct = FastWay(backend, ConvolutionPart::kInputGradient, shape, false, activation);
  if (direct == nullptr) return InputGradientByColumns(backend, shape);
  return Kernel([&backend, direct, sizes = ConvolutionSizes(shape)](const KernelContext& context,
                                                                    const KernelArguments& a) {
    RunInputGradient(backend, *direct, sizes, context.run.sequences, a);
  });
}

absl::StatusOr<Kernel> WeightGradient(CpuBackend& backend, const Call& call, const CallTypes& types,
                                      DType activation) {
  const auto attributes = AttributesOf<ConvolutionWeightGradientAttributes>(call);
  const ConvolutionShape shape = WeightGradientShape(attributes.steps, types);
  const auto direct = FastWay(backend, ConvolutionPart::kWeightGradient, shape, false, activation);
  if (direct == nullptr) return WeightGradientByColumns(backend, shape, attributes.bias);
  return Kernel([&backend, direct, sizes = ConvolutionSizes(shape), bias = attributes.bias,
                 out = shape.out](const KernelContext& context, const KernelArguments& a) {
    RunWeightGradient(backend, *direct, sizes, context.run.sequences, a);
    if (!bias) return;
    const Tensor operands[] = {a.inputs[0]};
    SumColumns(backend, operands, out, out, a.adds[1].data<float>(), SumPlaces);
  });
}

}  // namespace

KernelList ConvolutionKernels() {
  return {{"convolution", Forward},
          {"convolution_input_gradient", InputGradient},
          {"convolution_weight_gradient", WeightGradient},
          {"transposed_convolution", InputGradient}};
}

}  // namespace stagecoach::cpu
