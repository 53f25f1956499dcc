#include "stage/backends/cuda/cudnn/convolution/convolution_problem.h"

#include "base/errors/check.h"

namespace stagecoach::cudnn {
namespace {

// Of every part of a workspace: as the allocator of a card has it.
constexpr int64_t kPartAlignment = 256;
// What is left to the library where copies fill the rest. Of ResNet-50's weight gradients in TF32
// cuDNN 9.19 wants about 1 MiB for an H100.
constexpr int64_t kLibraryLeast = int64_t{4} << 20;

int64_t PartBytes(int64_t elements) {
  const int64_t bytes = elements * DTypeSize(DType::kF32);
  return (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
}

// [samples, rows, columns, channels] as it lies, told as [samples, channels, rows, columns].
TensorLayout ChannelsLast(int64_t samples, int64_t channels, int64_t rows, int64_t columns) {
  return {.dims = {samples, channels, rows, columns},
          .strides = {rows * columns * channels, 1, columns * channels, channels}};
}

int64_t SumsBytes(const ConvolutionProblem& problem) {
  return problem.accumulates() ? PartBytes(ElementsOf(LayoutsOf(problem).weight)) : 0;
}

// The room for `samples` at a time; the library has what is left, which may be less than nothing.
ConvolutionRoom RoomFor(const ConvolutionProblem& problem, int64_t samples, int64_t bytes) {
  ConvolutionRoom room = {.samples = samples, .library = SumsBytes(problem)};
  if (problem.widens()) {
    const int64_t pixels = samples * problem.height * problem.width;
    const int64_t places = samples * problem.places_height * problem.places_width;
    room.image = room.library;
    room.places = room.image + PartBytes(pixels * problem.channels);
    room.library = room.places + PartBytes(places * problem.out);
  }
  room.library_bytes = bytes - room.library;
  return room;
}

}  // namespace

ConvolutionProblem ProblemOf(const ConvolutionArgs& args) {
  const ConvolutionShape& s = args.shape;
  const WindowShape& w = s.window;
  CHECK(s.groups > 0 && w.channels % s.groups == 0 && s.out % s.groups == 0)
      << "groups must divide the channels";
  return {.pass = args.pass,
          .precision = args.precision,
          .bias = args.bias.valid(),
          .samples = w.samples,
          .height = w.height,
          .width = w.width,
          .channels = w.channels,
          .places_height = w.places_height,
          .places_width = w.places_width,
          .out = s.out,
          .window_height = w.size_height,
          .window_width = w.size_width,
          .stride_height = w.stride_height,
          .stride_width = w.stride_width,
          .padding_height = w.padding_height,
          .padding_width = w.padding_width,
          .dilation_height = w.dilation_height,
          .dilation_width = w.dilation_width,
          .groups = s.groups};
}

ConvolutionLayouts LayoutsOf(const ConvolutionProblem& p) {
  return {.image = ChannelsLast(p.samples, p.channels, p.height, p.width),
          .weight = ChannelsLast(p.out, p.channels / p.groups, p.window_height, p.window_width),
          .places = ChannelsLast(p.samples, p.out, p.places_height, p.places_width),
          .bias = ChannelsLast(1, p.out, 1, 1)};
}

ConvolutionRoom CutWorkspace(const ConvolutionProblem& problem, int64_t bytes) {
  const int64_t least = problem.widens() ? kLibraryLeast : 0;
  for (int64_t samples = problem.samples; samples > 0; --samples) {
    if (problem.samples % samples != 0) continue;
    const ConvolutionRoom room = RoomFor(problem, samples, bytes);
    if (room.library_bytes >= least) return room;
    if (!problem.widens()) break;  // fewer samples take no less
  }
  return {};
}

int64_t LeastWorkspace(const ConvolutionProblem& problem) {
  return RoomFor(problem, 1, 0).library + (problem.widens() ? kLibraryLeast : 0);
}

ConvolutionProblem ExecutionOf(const ConvolutionProblem& problem, const ConvolutionRoom& room) {
  ConvolutionProblem execution = problem;
  execution.samples = room.samples;
  if (problem.widens()) execution.precision = Precision::kTensorFloat32;
  return execution;
}

}  // namespace stagecoach::cudnn
