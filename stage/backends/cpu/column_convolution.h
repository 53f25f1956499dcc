// Convolutions as products of the columns that their places read, block by block of places, and channel by channel where
// a group is a single one (depthwise): for what oneDNN has no fast convolution of, or an image so large that a call of
// oneDNN's would show no progress for long.
// Threads, errors: as Backend::Prepare.
// Determinism: blocks, and the shares of a weight's gradient that samples are summed in, depend on shapes alone.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_COLUMN_CONVOLUTION_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_COLUMN_CONVOLUTION_H_

#include "stage/backends/cpu/cpu_backend.h"
#include "stage/backends/window_shape.h"

namespace stagecoach::cpu {

Kernel ForwardByColumns(CpuBackend& backend, const ConvolutionShape& shape, bool bias);
Kernel InputGradientByColumns(CpuBackend& backend, const ConvolutionShape& shape);
Kernel WeightGradientByColumns(CpuBackend& backend, const ConvolutionShape& shape, bool bias);

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_COLUMN_CONVOLUTION_H_
