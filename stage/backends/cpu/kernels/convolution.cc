// By oneDNN's own convolutions where they are fast, else by products of columns (stage/backends/cpu/column_convolution.h).
// A task is some images. Bfloat16 is widened, and rounded at the end.
#include "operations/convolution.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "stage/backends/convolution_shape.h"
#include "stage/backends/cpu/column_convolution.h"
#include "stage/backends/cpu/column_sums.h"
#include "stage/backends/cpu/convolution_room.h"
#include "stage/backends/cpu/direct_convolution.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/worker_pool.h"

namespace stagecoach::cpu {
namespace {

constexpr double kTaskFlops = 4e6;  // worth a task
constexpr double kMostCallFlops =
    2e10;  // of an image: a call takes a tenth of a second and shows no progress
constexpr int64_t kSharePlaces = 256;  // less is not worth a partial sum of a weight's gradient

struct Sizes {
  explicit Sizes(const ConvolutionShape& s)
      : image(s.window.height * s.window.width * s.window.channels),
        places(s.window.places_height * s.window.places_width),
        out(places * s.out),
        flops(2.0 * static_cast<double>(out * s.window.size_height * s.window.size_width *
                                        (s.window.channels / s.groups))) {}
  int64_t image, places, out;  // elements of an image, places, elements of all places
  double flops;                // of an image

  int64_t TaskImages() const {
    return std::max<int64_t>(1, static_cast<int64_t>(kTaskFlops / std::max(1.0, flops)));
  }
};

// Null where columns are the better way.
std::shared_ptr<DirectConvolutions> FastWay(CpuBackend& backend, ConvolutionPart part,
                                            const ConvolutionShape& shape, bool bias) {
  if (backend.convolutions() == Convolutions::kByColumns) return nullptr;
  const Sizes sizes(shape);
  if (sizes.image == 0 || sizes.out == 0 || sizes.flops > kMostCallFlops) return nullptr;
  // oneDNN's gradient of single channels takes ten times as long with a window of 5x5 as ours, half as long with 3x3.
  const bool depthwise = shape.groups == shape.window.channels;
  const bool large = std::max(shape.window.size_height, shape.window.size_width) > 3;
  if (part == ConvolutionPart::kWeightGradient && depthwise && large) return nullptr;
  auto direct = std::make_shared<DirectConvolutions>(part, shape, bias);
  if (!direct->Of(1).fast()) return nullptr;
  return direct;
}

// Primitives of a whole task and of a shorter last one.
struct TaskPair {
  TaskPair(DirectConvolutions& direct, int64_t samples, int64_t images)
      : full(direct.Of(std::min(images, samples))),
        rest(samples % images == 0 ? full : direct.Of(samples % images)),
        images(std::min(images, samples)) {}
  const DirectConvolution& Of(int64_t count) const { return count == images ? full : rest; }
  int64_t scratch_floats() const {
    const int64_t bytes = std::max(full.scratch_bytes(), rest.scratch_bytes());
    return (bytes + kFloatBytes - 1) / kFloatBytes;
  }
  const DirectConvolution &full, &rest;
  const int64_t images;
};

// What a worker of a task takes.
struct TaskRoom {
  TaskRoom(const TaskPair& pair, const Sizes& sizes, bool widens)
      : scratch(pair.scratch_floats()),
        image(widens ? pair.images * sizes.image : 0),
        places(widens ? pair.images * sizes.out : 0) {}
  int64_t bytes() const {
    return (Pieces::Rounded(scratch) + Pieces::Rounded(image) + Pieces::Rounded(places)) *
           kFloatBytes;
  }
  int64_t scratch, image, places;
};

// The weight packed and a bias as floats; without memory no weight.
struct PackedWeight {
  const float *weight = nullptr, *bias = nullptr;

  static PackedWeight Of(CpuBackend& backend, const DirectConvolution& direct, const Tensor& weight,
                         const Tensor& bias) {
    const int64_t widened = IsBfloat16(weight) ? weight.elements() : 0;
    const int64_t widened_bias = bias.valid() && IsBfloat16(bias) ? bias.elements() : 0;
    const int64_t packed = Pieces::Rounded(direct.packed_bytes() / kFloatBytes);
    PackedWeight made;
    float* const room = backend.ReserveShared(
        (packed + Pieces::Rounded(widened) + Pieces::Rounded(widened_bias)) * kFloatBytes);
    if (room == nullptr) return made;
    Pieces pieces(room + packed);
    const SerialOpenMp serial;
    direct.Pack(AsFloats(weight, pieces.Take(widened)), room);
    made.weight = room;
    if (bias.valid()) made.bias = AsFloats(bias, pieces.Take(widened_bias));
    return made;
  }
};

void RunForward(CpuBackend& backend, DirectConvolutions& direct, const Sizes& sizes, bool bias,
                int64_t samples, const KernelArguments& a) {
  if (samples == 0) return;
  const TaskPair pair(direct, samples, sizes.TaskImages());
  const TaskRoom room(pair, sizes, IsBfloat16(a.inputs[0]));
  if (!backend.ReserveWorkers(room.bytes())) return;
  const PackedWeight weight =
      PackedWeight::Of(backend, pair.full, a.inputs[1], bias ? a.inputs[2] : Tensor());
  if (weight.weight == nullptr) return;
  const FloatInput x(a.inputs[0]);
  const FloatOutput y(a.outputs[0]);
  backend.ForEachBlock(samples, pair.images, [&](int64_t first, int64_t count, int worker) {
    Pieces pieces(backend.WorkerScratch(worker));
    float *const scratch = pieces.Take(room.scratch), *const image = pieces.Take(room.image);
    float* const widened = pieces.Take(room.places);
    float* const places = y.At(first * sizes.out, widened);
    pair.Of(count).Execute(x.Read(first * sizes.image, count * sizes.image, image), weight.weight,
                           weight.bias, places, scratch);
    y.Finish(first * sizes.out, count * sizes.out, places);
  });
}

void RunInputGradient(CpuBackend& backend, DirectConvolutions& direct, const Sizes& sizes,
                      int64_t samples, const KernelArguments& a) {
  if (samples == 0) return;
  const TaskPair pair(direct, samples, sizes.TaskImages());
  const TaskRoom room(pair, sizes, IsBfloat16(a.inputs[0]));
  if (!backend.ReserveWorkers(room.bytes())) return;
  const PackedWeight weight = PackedWeight::Of(backend, pair.full, a.inputs[1], Tensor());
  if (weight.weight == nullptr) return;
  const FloatInput dy(a.inputs[0]);
  const FloatOutput dx(a.outputs[0]);
  backend.ForEachBlock(samples, pair.images, [&](int64_t first, int64_t count, int worker) {
    Pieces pieces(backend.WorkerScratch(worker));
    float *const scratch = pieces.Take(room.scratch), *const widened = pieces.Take(room.image);
    float* const places = pieces.Take(room.places);
    float* const image = dx.At(first * sizes.image, widened);
    pair.Of(count).Execute(image, weight.weight, nullptr,
                           dy.Read(first * sizes.out, count * sizes.out, places), scratch);
    dx.Finish(first * sizes.image, count * sizes.image, image);
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

void RunWeightGradient(CpuBackend& backend, DirectConvolutions& direct, const Sizes& sizes,
                       int64_t samples, const KernelArguments& a) {
  if (samples == 0) return;
  const int64_t worth = (kSharePlaces + sizes.places - 1) / sizes.places;
  const int64_t each = std::max((samples + kShares - 1) / kShares, worth);
  const TaskPair pair(direct, samples, each);
  const TaskRoom room(pair, sizes, IsBfloat16(a.inputs[0]));
  const int64_t share = Pieces::Rounded(pair.full.packed_bytes() / kFloatBytes);
  const int64_t count = (samples + pair.images - 1) / pair.images;
  if (!backend.ReserveWorkers(room.bytes())) return;
  float* const shares = backend.ReserveShared(count * share * kFloatBytes);
  if (shares == nullptr) return;
  const FloatInput dy(a.inputs[0]), x(a.inputs[1]);
  backend.ForEachBlock(samples, pair.images, [&](int64_t first, int64_t some, int worker) {
    Pieces pieces(backend.WorkerScratch(worker));
    float *const scratch = pieces.Take(room.scratch), *const image = pieces.Take(room.image);
    float* const places = pieces.Take(room.places);
    pair.Of(some).Execute(x.Read(first * sizes.image, some * sizes.image, image),
                          shares + first / pair.images * share, nullptr,
                          dy.Read(first * sizes.out, some * sizes.out, places), scratch);
  });
  SumShares(backend, shares, share, count);
  const SerialOpenMp serial;
  pair.full.AddUnpacked(shares, a.adds[0].data<float>());
}

absl::StatusOr<Kernel> Forward(CpuBackend& backend, const Call& call, const CallTypes& types,
                               DType) {
  const auto attributes = AttributesOf<ConvolutionAttributes>(call);
  const ConvolutionShape shape = ForwardShape(attributes.steps, types);
  const auto direct = FastWay(backend, ConvolutionPart::kForward, shape, attributes.bias);
  if (direct == nullptr) return ForwardByColumns(backend, shape, attributes.bias);
  return Kernel([&backend, direct, sizes = Sizes(shape), bias = attributes.bias](
                    const KernelContext& context, const KernelArguments& a) {
    RunForward(backend, *direct, sizes, bias, context.run.sequences, a);
  });
}

absl::StatusOr<Kernel> InputGradient(CpuBackend& backend, const Call& call, const CallTypes& types,
                                     DType) {
  const ConvolutionShape shape =
      InputGradientShape(AttributesOf<ConvolutionInputGradientAttributes>(call).steps, types);
  const auto direct = FastWay(backend, ConvolutionPart::kInputGradient, shape, false);
  if (direct == nullptr) return InputGradientByColumns(backend, shape);
  return Kernel([&backend, direct, sizes = Sizes(shape)](const KernelContext& context,
                                                         const KernelArguments& a) {
    RunInputGradient(backend, *direct, sizes, context.run.sequences, a);
  });
}

absl::StatusOr<Kernel> WeightGradient(CpuBackend& backend, const Call& call, const CallTypes& types,
                                      DType) {
  const auto attributes = AttributesOf<ConvolutionWeightGradientAttributes>(call);
  const ConvolutionShape shape = WeightGradientShape(attributes.steps, types);
  const auto direct = FastWay(backend, ConvolutionPart::kWeightGradient, shape, false);
  if (direct == nullptr) return WeightGradientByColumns(backend, shape, attributes.bias);
  return Kernel([&backend, direct, sizes = Sizes(shape), bias = attributes.bias, out = shape.out](
                    const KernelContext& context, const KernelArguments& a) {
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
