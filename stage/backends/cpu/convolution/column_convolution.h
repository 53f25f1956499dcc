// Convolutions as matrix products. A column is the inputs that one output place reads. They go
// block by block of places, and channel by channel if a group is a single channel (depthwise). They
// serve shapes for which oneDNN has no fast convolution. They also serve an image so large that one
// call of oneDNN would show no progress for long.
// Threads, errors: as Backend::Prepare.
// Determinism: blocks depend on shapes alone. So do the shares of a weight's gradient, in which
//            samples are summed.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_CONVOLUTION_COLUMN_CONVOLUTION_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_CONVOLUTION_COLUMN_CONVOLUTION_H_

#include "stage/backends/cpu/cpu_backend.h"
#include "stage/backends/window_shape.h"

namespace stagecoach::cpu {

Kernel ForwardByColumns(CpuBackend& backend, const ConvolutionShape& shape, bool bias);
Kernel InputGradientByColumns(CpuBackend& backend, const ConvolutionShape& shape);
Kernel WeightGradientByColumns(CpuBackend& backend, const ConvolutionShape& shape, bool bias);

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_CONVOLUTION_COLUMN_CONVOLUTION_H_
