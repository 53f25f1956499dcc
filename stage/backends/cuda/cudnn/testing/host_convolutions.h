// HostConvolutions: convolution graphs computed by plain loops over the layouts that cuDNN would be
// given. They compare strides, pointers, slices and workspaces with the reference without a card.
// Sums are doubles, so they say nothing about cuDNN's numbers. For tests.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_TESTING_HOST_CONVOLUTIONS_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_TESTING_HOST_CONVOLUTIONS_H_

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/errors/check.h"
#include "base/numbers/bfloat16.h"
#include "stage/backends/cuda/cudnn/convolution/convolution_graphs.h"

namespace stagecoach::cudnn {

// Calls for a test to check, and answers that it sets; outlives the graphs.
struct ConvolutionLog {
  std::vector<ConvolutionProblem> built;
  std::vector<int64_t> limits;    // workspace limit of each Build
  std::vector<void*> workspaces;  // workspace of each Run
  int64_t workspace_bytes = 64;   // that graphs ask for
  absl::Status build, run;        // results of Build and Run
};

class HostConvolution final : public ConvolutionGraph {
 public:
  HostConvolution(const ConvolutionProblem& problem, ConvolutionLog* log)
      : p_(problem), layouts_(LayoutsOf(problem)), log_(log) {}

  int64_t workspace_bytes() const override { return log_->workspace_bytes; }
  std::string engine() const override { return "of plain loops"; }

  absl::Status Run(const ConvolutionPointers& pointers, void* workspace) override {
    if (!log_->run.ok()) return log_->run;
    log_->workspaces.push_back(workspace);
    // Fills all of it: a sanitizer sees a workspace that is too small, a test one that overlaps.
    std::memset(workspace, 0xff, static_cast<size_t>(log_->workspace_bytes));
    switch (p_.pass) {
      case ConvolutionPass::kForward:
        Forward(pointers);
        break;
      case ConvolutionPass::kInputGradient:
        InputGradient(pointers);
        break;
      case ConvolutionPass::kWeightGradient:
        WeightGradient(pointers);
        break;
    }
    return absl::OkStatus();
  }

 private:
  static int64_t Offset(const TensorLayout& l, int64_t a, int64_t b, int64_t c, int64_t d) {
    CHECK(a < l.dims[0] && b < l.dims[1] && c < l.dims[2] && d < l.dims[3]);
    return a * l.strides[0] + b * l.strides[1] + c * l.strides[2] + d * l.strides[3];
  }
  double Load(const void* data, int64_t at) const {
    if (p_.dtype() == DType::kF32) return static_cast<const float*>(data)[at];
    return static_cast<float>(static_cast<const Bfloat16*>(data)[at]);
  }
  void Store(DType dtype, void* data, const std::vector<double>& values) const {
    for (size_t i = 0; i < values.size(); ++i) {
      const auto value = static_cast<float>(values[i]);
      if (dtype == DType::kF32) {
        static_cast<float*>(data)[i] = value;
      } else {
        static_cast<Bfloat16*>(data)[i] = Bfloat16(value);
      }
    }
  }

  // Calls f(offsets of pixel, tap and place) for every product.
  template <typename F>
  void ForEachProduct(F f) const {
    const int64_t in = p_.channels / p_.groups, out = p_.out / p_.groups;
    for (int64_t place = 0; place < ElementsOf(layouts_.places); ++place) {
      const int64_t o = place % p_.out, j = place / p_.out % p_.places_width;
      const int64_t i = place / (p_.out * p_.places_width) % p_.places_height;
      const int64_t n = place / (p_.out * p_.places_width * p_.places_height);
      for (int64_t tap = 0; tap < in * p_.window_height * p_.window_width; ++tap) {
        const int64_t c = tap % in, v = tap / in % p_.window_width;
        const int64_t u = tap / (in * p_.window_width);
        const int64_t row = i * p_.stride_height - p_.padding_height + u * p_.dilation_height;
        const int64_t column = j * p_.stride_width - p_.padding_width + v * p_.dilation_width;
        if (row < 0 || row >= p_.height || column < 0 || column >= p_.width) continue;
        f(Offset(layouts_.image, n, o / out * in + c, row, column),
          Offset(layouts_.weight, o, c, u, v), Offset(layouts_.places, n, o, i, j));
      }
    }
  }
  void Forward(const ConvolutionPointers& t) const {
    std::vector<double> places(static_cast<size_t>(ElementsOf(layouts_.places)));
    ForEachProduct([&](int64_t pixel, int64_t tap, int64_t place) {
      places[place] += Load(t.image, pixel) * Load(t.weight, tap);
    });
    for (size_t i = 0; p_.bias && i < places.size(); ++i) {
      places[i] += Load(t.bias, static_cast<int64_t>(i) % p_.out);
    }
    Store(p_.dtype(), t.places, places);
  }
  void InputGradient(const ConvolutionPointers& t) const {
    std::vector<double> image(static_cast<size_t>(ElementsOf(layouts_.image)));
    ForEachProduct([&](int64_t pixel, int64_t tap, int64_t place) {
      image[pixel] += Load(t.places, place) * Load(t.weight, tap);
    });
    Store(p_.dtype(), t.image, image);
  }
  void WeightGradient(const ConvolutionPointers& t) const {
    std::vector<double> weight(static_cast<size_t>(ElementsOf(layouts_.weight)));
    ForEachProduct([&](int64_t pixel, int64_t tap, int64_t place) {
      weight[tap] += Load(t.places, place) * Load(t.image, pixel);
    });
    Store(DType::kF32, t.weight, weight);
  }

  const ConvolutionProblem p_;
  const ConvolutionLayouts layouts_;
  ConvolutionLog* const log_;
};

class HostConvolutions final : public ConvolutionGraphs {
 public:
  explicit HostConvolutions(ConvolutionLog* log) : log_(log) {}
  CudnnOffer offer() const override { return {.version = 91900, .compute_capability = 90}; }
  std::string version() const override { return "plain loops"; }
  absl::StatusOr<std::unique_ptr<ConvolutionGraph>> Build(const ConvolutionProblem& problem,
                                                          int64_t workspace_bytes) override {
    // cuDNN 9.19 has none.
    CHECK(!problem.widens()) << "a weight's gradient of BF16 numbers";
    log_->built.push_back(problem);
    log_->limits.push_back(workspace_bytes);
    if (!log_->build.ok()) return log_->build;
    return std::make_unique<HostConvolution>(problem, log_);
  }

 private:
  ConvolutionLog* const log_;
};

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_TESTING_HOST_CONVOLUTIONS_H_
