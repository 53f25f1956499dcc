// ConvolutionCalls: how a convolution of a micro-batch is cut into oneDNN's calls, and these into
// tasks for threads. A call computes some whole images or, if there are few, some rows of one
// (convolution_rows.h). The cut follows from the shape and the number of images alone, so that no
// bit depends on the number of threads.
// Ownership: borrows the primitives, which live as long as their kernel.
// Threads:   made on the executor thread, read by any.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_CONVOLUTION_CONVOLUTION_CALLS_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_CONVOLUTION_CONVOLUTION_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "operations/images/convolution.h"
#include "stage/backends/cpu/primitives/direct_convolution.h"

namespace stagecoach::cpu {

inline constexpr double kMostCallFlops = 2e10;  // takes a fifth of a second and shows no progress
inline constexpr int64_t kMostWidened = kMostWidenedBytes;

// Sizes of one image.
struct ConvolutionSizes {
  explicit ConvolutionSizes(const ConvolutionShape& shape);
  int64_t WidenedBytes() const;  // float32 bytes of the image and its places

  int64_t image, places, out;  // elements of the image, places, elements of all places
  double flops;
};

// Offsets and sizes, in elements, within the images and within their places.
struct ConvolutionCall {
  const DirectConvolution* one = nullptr;
  int64_t image = 0, image_elements = 0, places = 0, places_elements = 0;
};

class ConvolutionCalls {
 public:
  // Tasks of a forward or an input gradient. Each has enough work for a thread; if the work allows,
  // there are several.
  static ConvolutionCalls OfOutputs(DirectConvolutions& direct, const ConvolutionSizes& sizes,
                                    int64_t samples, bool widens);
  // Tasks of a weight's gradient: each is a share (operations/images/convolution.h).
  static ConvolutionCalls OfShares(DirectConvolutions& direct, const ConvolutionSizes& sizes,
                                   int64_t samples, bool widens);

  int64_t tasks() const { return static_cast<int64_t>(first_calls_.size()); }
  std::span<const ConvolutionCall> Task(int64_t task) const;  // in order; never empty
  const DirectConvolution& first() const {
    return *calls_.front().one;
  }  // all calls have its packing

  // A worker's scratch memory. `sum`: room for sums if a task has several calls, else null.
  struct Room {
    float *scratch, *image, *places, *sum;
  };
  int64_t RoomBytes(int64_t sum = 0) const;
  Room RoomIn(float* memory) const;

 private:
  explicit ConvolutionCalls(bool widens) : widens_(widens) {}
  // Adds tasks of `task` images at most. A call has as many images as oneDNN is fast with.
  void AddImages(DirectConvolutions& direct, const ConvolutionSizes& sizes, int64_t samples,
                 int64_t task);
  // Cuts each image into at most `parts` tasks. False: images have to stay whole.
  bool AddRows(DirectConvolutions& direct, const ConvolutionSizes& sizes, int64_t samples,
               int64_t parts);
  void Add(const ConvolutionCall& call, bool begins_task);

  const bool widens_;
  std::vector<ConvolutionCall> calls_;
  std::vector<size_t> first_calls_;               // by task
  int64_t scratch_ = 0, image_ = 0, places_ = 0;  // floats of the largest call
  bool several_ = false;                          // some task has more calls than one
};

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_CONVOLUTION_CONVOLUTION_CALLS_H_
