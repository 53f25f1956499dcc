// A convolution as a value: the problem for a library that takes [samples, channels, height, width]
// with strides. It has the layouts of the project's tensors for that library, and the cut of the
// fixed workspace. Tensors are views without copies, except for weight gradients in BF16. For these
// the contract requires float32 results, and cuDNN has no such convolution. They are computed from
// float32 copies of some samples at a time, with products in TF32. A BF16 number is a TF32 number,
// so the products' operands are not rounded. Pure values, so that they are tested without a card.
// Units and shapes: layouts in elements, workspaces in bytes.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_CONVOLUTION_CONVOLUTION_PROBLEM_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_CONVOLUTION_CONVOLUTION_PROBLEM_H_

#include <cstdint>
#include <utility>

#include "base/numbers/precision.h"
#include "stage/backends/cuda/cudnn/convolution/convolution_operands.h"
#include "stage/backends/cuda/cudnn/tensor_layout.h"

namespace stagecoach::cudnn {

// The key of the plan cache: nothing else decides about a plan, hence about the bits.
struct ConvolutionProblem {
  ConvolutionPass pass = ConvolutionPass::kForward;
  Precision precision = Precision::kFloat32;
  bool bias = false;
  int64_t samples = 0, height = 0, width = 0, channels = 0;
  int64_t places_height = 0, places_width = 0, out = 0;
  int64_t window_height = 0, window_width = 0;
  int64_t stride_height = 1, stride_width = 1, padding_height = 0, padding_width = 0;
  int64_t dilation_height = 1, dilation_width = 1, groups = 1;

  // Whether the result is added to the target. Graphs write; then own kernels add.
  bool accumulates() const { return pass == ConvolutionPass::kWeightGradient; }
  // Whether it is computed from float32 copies.
  bool widens() const { return accumulates() && precision == Precision::kBfloat16; }
  DType dtype() const { return ComputeDType(precision); }  // of all but a weight's gradient

  friend bool operator==(const ConvolutionProblem&, const ConvolutionProblem&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ConvolutionProblem& p) {
    return H::combine(std::move(h), p.pass, p.precision, p.bias, p.samples, p.height, p.width,
                      p.channels, p.places_height, p.places_width, p.out, p.window_height,
                      p.window_width, p.stride_height, p.stride_width, p.padding_height,
                      p.padding_width, p.dilation_height, p.dilation_width, p.groups);
  }
};
ConvolutionProblem ProblemOf(const ConvolutionArgs& args);  // CHECKs that groups divide channels

// Layouts of the graph's tensors: sample (or output channel), channel, row, column.
struct ConvolutionLayouts {
  TensorLayout image, weight, places, bias;
};
ConvolutionLayouts LayoutsOf(const ConvolutionProblem& problem);

// How the fixed workspace is cut for one execution. A weight's gradient comes first, from 0 on.
struct ConvolutionRoom {
  int64_t samples = 0;            // of one execution; divides those of the problem
  int64_t image = 0, places = 0;  // where float32 copies begin, if the problem widens
  int64_t library = 0;            // where the library's own workspace begins
  int64_t library_bytes = 0;      // and its size: no plan may want more
  friend bool operator==(const ConvolutionRoom&, const ConvolutionRoom&) = default;
};
// If `bytes` are too few for one sample, samples is 0.
ConvolutionRoom CutWorkspace(const ConvolutionProblem& problem, int64_t bytes);
// The workspace that one sample needs at least, in bytes.
int64_t LeastWorkspace(const ConvolutionProblem& problem);

// The problem for the library, with the samples of one execution: the same, or its float32 form.
ConvolutionProblem ExecutionOf(const ConvolutionProblem& problem, const ConvolutionRoom& room);

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_CONVOLUTION_CONVOLUTION_PROBLEM_H_
