// By oneDNN's own convolutions where they are fast, else by products of columns (stage/backends/cpu/column_convolution.h).
// A task is some images, computed by calls of as many as are made for at once. Bfloat16 is widened call by call, and
// rounded at the end.
#include "operations/convolution.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/progress.h"
#include "stage/backends/convolution_shape.h"
#include "stage/backends/cpu/column_convolution.h"
#include "stage/backends/cpu/column_sums.h"
#include "stage/backends/cpu/convolution_room.h"
#include "stage/backends/cpu/direct_convolution.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/worker_pool.h"

namespace stagecoach::cpu {
namespace {

constexpr double kTaskFlops = 4e6;          // worth a task
constexpr double kMostCallFlops = 2e10;     // takes a fifth of a second and shows no progress
constexpr int64_t kMostWidened = 16 << 20;  // bytes that a worker widens at a time

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
  int64_t WidenedBytes() const { return (image + out) * kFloatBytes; }
  // Images of a call, at most.
  int64_t CallImages(bool widens) const {
    const double most = kMostCallFlops / std::max(1.0, flops);
    const int64_t images = most < 1e9 ? static_cast<int64_t>(most) : int64_t{1000000000};
    return std::max<int64_t>(1, widens ? std::min(images, kMostWidened / WidenedBytes()) : images);
  }
};

// oneDNN's gradient of a 1x1 window with a stride writes behind its scratch on AVX2 where fewer than 8 channels come in.
bool WritesBehindItsScratch(const ConvolutionShape& s) {
  const WindowShape& w = s.window;
  return w.size_height == 1 && w.size_width == 1 && (w.stride_height > 1 || w.stride_width > 1) &&
         w.channels / s.groups < 8;
}

// Null where columns are the better way.
std::shared_ptr<DirectConvolutions> FastWay(CpuBackend& backend, ConvolutionPart part,
                                            const ConvolutionShape& shape, bool bias,
                                            DType activation) {
  if (backend.convolutions() == Convolutions::kByColumns) return nullptr;
  const Sizes sizes(shape);
  if (sizes.image == 0 || sizes.out == 0 || sizes.flops > kMostCallFlops) return nullptr;
  if (activation == DType::kBF16 && sizes.WidenedBytes() > kMostWidened) return nullptr;
  if (part == ConvolutionPart::kWeightGradient && WritesBehindItsScratch(shape)) return nullptr;
  // oneDNN's gradient of single channels takes ten times as long with a window of 5x5 as ours, half as long with 3x3.
  const bool depthwise = shape.groups == shape.window.channels;
  const bool large = std::max(shape.window.size_height, shape.window.size_width) > 3;
  if (part == ConvolutionPart::kWeightGradient && depthwise && large) return nullptr;
  auto direct = std::make_shared<DirectConvolutions>(part, shape, bias);
  if (!direct->Of(1).fast()) return nullptr;
  return direct;
}

// Samples cut into tasks of `images`, these into calls of `call` images, which divides them; the last call has the rest.
struct Calls {
  Calls(DirectConvolutions& direct, int64_t samples, int64_t task, int64_t most)
      : call(CallImages(direct, samples, std::min({samples, task, most}))),
        images((std::min(samples, task) + call - 1) / call * call),
        full(direct.Of(call)),
        rest(samples % call == 0 ? full : direct.Of(samples % call)) {}
  // run(primitive, first, some) for the calls of a task, in order.
  template <typename Run>
  void ForEach(int64_t first, int64_t count, const Run& run) const {
    for (const int64_t end = first + count; first < end; first += call) {
      const int64_t some = std::min(call, end - first);
      run(some == call ? full : rest, first, some);
      TickProgress();  // a task may take long
    }
  }
  int64_t scratch_floats() const {
    const int64_t bytes = std::max(full.scratch_bytes(), rest.scratch_bytes());
    return (bytes + kFloatBytes - 1) / kFloatBytes;
  }
  const int64_t call, images;
  const DirectConvolution &full, &rest;

 private:
  // For several images, packed as for one, oneDNN may know general ways only, a hundred times slower.
  static int64_t CallImages(DirectConvolutions& direct, int64_t samples, int64_t call) {
    const bool fast =
        direct.Of(call).fast() && (samples % call == 0 || direct.Of(samples % call).fast());
    return fast ? call : 1;
  }
};

// What a worker of a task takes.
struct TaskRoom {
  TaskRoom(const Calls& calls, const Sizes& sizes, bool widens, int64_t sum = 0)
      : scratch(calls.scratch_floats()),
        image(widens ? calls.call * sizes.image : 0),
        places(widens ? calls.call * sizes.out : 0),
        sum(calls.images > calls.call ? sum : 0) {}
  int64_t bytes() const {
    return (Pieces::Rounded(scratch) + Pieces::Rounded(image) + Pieces::Rounded(places) +
            Pieces::Rounded(sum)) *
           kFloatBytes;
  }
  int64_t scratch, image, places, sum;
};

// The weight packed and a bias as floats; without memory no weight. A parameter's packing is kept while its values are
// the same, another weight's is made for this call alone.
struct PackedWeight {
  const float *weight = nullptr, *bias = nullptr;

  static PackedWeight Of(CpuBackend& backend, const DirectConvolutions& way,
                         const DirectConvolution& direct, const Tensor& weight,
                         const Tensor& bias) {
    const bool kept = backend.packed_weights().Keeps(weight);
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

void RunForward(CpuBackend& backend, DirectConvolutions& direct, const Sizes& sizes, bool bias,
                int64_t samples, const KernelArguments& a) {
  if (samples == 0) return;
  const bool widens = IsBfloat16(a.inputs[0]);
  const Calls calls(direct, samples, sizes.TaskImages(), sizes.CallImages(widens));
  const TaskRoom room(calls, sizes, widens);
  if (!backend.ReserveWorkers(room.bytes())) return;
  const PackedWeight weight =
      PackedWeight::Of(backend, direct, calls.full, a.inputs[1], bias ? a.inputs[2] : Tensor());
  if (weight.weight == nullptr) return;
  const FloatInput x(a.inputs[0]);
  const FloatOutput y(a.outputs[0]);
  backend.ForEachBlock(samples, calls.images, [&](int64_t begin, int64_t count, int worker) {
    Pieces pieces(backend.WorkerScratch(worker));
    float *const scratch = pieces.Take(room.scratch), *const image = pieces.Take(room.image);
    float* const widened = pieces.Take(room.places);
    calls.ForEach(begin, count, [&](const DirectConvolution& one, int64_t first, int64_t some) {
      float* const places = y.At(first * sizes.out, widened);
      one.Execute(x.Read(first * sizes.image, some * sizes.image, image), weight.weight,
                  weight.bias, places, scratch);
      y.Finish(first * sizes.out, some * sizes.out, places);
    });
  });
}

void RunInputGradient(CpuBackend& backend, DirectConvolutions& direct, const Sizes& sizes,
                      int64_t samples, const KernelArguments& a) {
  if (samples == 0) return;
  const bool widens = IsBfloat16(a.inputs[0]);
  const Calls calls(direct, samples, sizes.TaskImages(), sizes.CallImages(widens));
  const TaskRoom room(calls, sizes, widens);
  if (!backend.ReserveWorkers(room.bytes())) return;
  const PackedWeight weight = PackedWeight::Of(backend, direct, calls.full, a.inputs[1], Tensor());
  if (weight.weight == nullptr) return;
  const FloatInput dy(a.inputs[0]);
  const FloatOutput dx(a.outputs[0]);
  backend.ForEachBlock(samples, calls.images, [&](int64_t begin, int64_t count, int worker) {
    Pieces pieces(backend.WorkerScratch(worker));
    float *const scratch = pieces.Take(room.scratch), *const widened = pieces.Take(room.image);
    float* const places = pieces.Take(room.places);
    calls.ForEach(begin, count, [&](const DirectConvolution& one, int64_t first, int64_t some) {
      float* const image = dx.At(first * sizes.image, widened);
      one.Execute(image, weight.weight, nullptr,
                  dy.Read(first * sizes.out, some * sizes.out, places), scratch);
      dx.Finish(first * sizes.image, some * sizes.image, image);
    });
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
  const int64_t each = SamplesOfShare(samples, sizes.places);
  const bool widens = IsBfloat16(a.inputs[0]);
  const Calls calls(direct, samples, each, sizes.CallImages(widens));
  const int64_t share = Pieces::Rounded(calls.full.packed_bytes() / kFloatBytes);
  const TaskRoom room(calls, sizes, widens, share);
  const int64_t count = (samples + calls.images - 1) / calls.images;
  if (!backend.ReserveWorkers(room.bytes())) return;
  float* const shares = backend.ReserveShared(count * share * kFloatBytes);
  if (shares == nullptr) return;
  const FloatInput dy(a.inputs[0]), x(a.inputs[1]);
  backend.ForEachBlock(samples, calls.images, [&](int64_t begin, int64_t count, int worker) {
    Pieces pieces(backend.WorkerScratch(worker));
    float *const scratch = pieces.Take(room.scratch), *const image = pieces.Take(room.image);
    float *const places = pieces.Take(room.places), *const next = pieces.Take(room.sum);
    float* const sum = shares + begin / calls.images * share;
    calls.ForEach(begin, count, [&](const DirectConvolution& one, int64_t first, int64_t some) {
      float* const target = first == begin ? sum : next;
      one.Execute(x.Read(first * sizes.image, some * sizes.image, image), target, nullptr,
                  dy.Read(first * sizes.out, some * sizes.out, places), scratch);
      if (target == next) AddTo(next, sum, share);
    });
  });
  SumShares(backend, shares, share, count);
  const SerialOpenMp serial;
  calls.full.AddUnpacked(shares, a.adds[0].data<float>());
}

absl::StatusOr<Kernel> Forward(CpuBackend& backend, const Call& call, const CallTypes& types,
                               DType activation) {
  const auto attributes = AttributesOf<ConvolutionAttributes>(call);
  const ConvolutionShape shape = ForwardShape(attributes.steps, types);
  const auto direct =
      FastWay(backend, ConvolutionPart::kForward, shape, attributes.bias, activation);
  if (direct == nullptr) return ForwardByColumns(backend, shape, attributes.bias);
  return Kernel([&backend, direct, sizes = Sizes(shape), bias = attributes.bias](
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
  return Kernel([&backend, direct, sizes = Sizes(shape)](const KernelContext& context,
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
