#include "stage/backends/cuda/cudnn/pool/pool_problem.h"

#include "base/errors/check.h"

namespace stagecoach::cudnn {
namespace {

VolumeLayout OneChannel(int64_t samples, int64_t rows, int64_t columns, int64_t channels) {
  const int64_t volume = rows * columns * channels;
  return {.dims = {samples, 1, rows, columns, channels},
          .strides = {volume, volume, columns * channels, channels, 1}};
}

}  // namespace

PoolProblem ProblemOf(const AveragePoolArgs& args) {
  const WindowShape& s = args.shape;
  CHECK(s.dilation_height == 1 && s.dilation_width == 1) << "pools have no dilation";
  return {.pass = args.pass,
          .dtype = args.image.dtype(),
          .count_padding = args.count_padding,
          .samples = s.samples,
          .height = s.height,
          .width = s.width,
          .channels = s.channels,
          .places_height = s.places_height,
          .places_width = s.places_width,
          .window_height = s.size_height,
          .window_width = s.size_width,
          .stride_height = s.stride_height,
          .stride_width = s.stride_width,
          .padding_height = s.padding_height,
          .padding_width = s.padding_width};
}

bool Tiles(const PoolProblem& p) {
  const auto tiles = [](int64_t extent, int64_t places, int64_t window, int64_t stride,
                        int64_t padding) {
    return padding == 0 && places * window == extent && (stride == window || places == 1);
  };
  return tiles(p.height, p.places_height, p.window_height, p.stride_height, p.padding_height) &&
         tiles(p.width, p.places_width, p.window_width, p.stride_width, p.padding_width);
}

PoolLayouts LayoutsOf(const PoolProblem& p) {
  return {.image = OneChannel(p.samples, p.height, p.width, p.channels),
          .places = OneChannel(p.samples, p.places_height, p.places_width, p.channels)};
}

VolumeWindow WindowOf(const PoolProblem& p) {
  return {.size = {p.window_height, p.window_width, 1},
          .stride = {p.stride_height, p.stride_width, 1},
          .padding = {p.padding_height, p.padding_width, 0}};
}

}  // namespace stagecoach::cudnn
