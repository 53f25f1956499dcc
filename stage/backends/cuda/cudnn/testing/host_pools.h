// HostPools: pool graphs computed by plain loops over the volumes that cuDNN would be given. They
// compare strides, windows and pointers with the reference without a card. Sums are doubles, so
// they say nothing about cuDNN's numbers. For tests.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_TESTING_HOST_POOLS_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_TESTING_HOST_POOLS_H_

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/errors/check.h"
#include "base/numbers/bfloat16.h"
#include "stage/backends/cuda/cudnn/pool/pool_graphs.h"

namespace stagecoach::cudnn {

// Calls for a test to check, and answers that it sets; outlives the graphs.
struct PoolLog {
  std::vector<PoolProblem> built;
  std::vector<int64_t> limits;  // workspace limit of each Build
  int runs = 0;
  int64_t workspace_bytes = 64;  // that graphs ask for
  absl::Status build, run;       // results of Build and Run
};

class HostPool final : public PoolGraph {
 public:
  HostPool(const PoolProblem& problem, PoolLog* log)
      : p_(problem), layouts_(LayoutsOf(problem)), window_(WindowOf(problem)), log_(log) {}

  int64_t workspace_bytes() const override { return log_->workspace_bytes; }
  std::string engine() const override { return "of plain loops"; }

  absl::Status Run(const PoolPointers& pointers, void* workspace) override {
    if (!log_->run.ok()) return log_->run;
    ++log_->runs;
    // Fills all of it, so that a sanitizer sees a workspace that is too small.
    std::memset(workspace, 0xff, static_cast<size_t>(log_->workspace_bytes));
    p_.pass == PoolPass::kForward ? Forward(pointers) : Gradient(pointers);
    return absl::OkStatus();
  }

 private:
  using Index = std::array<int64_t, 5>;
  static int64_t Offset(const VolumeLayout& layout, const Index& at) {
    int64_t offset = 0;
    for (size_t i = 0; i < at.size(); ++i) {
      CHECK(at[i] >= 0 && at[i] < layout.dims[i]);
      offset += at[i] * layout.strides[i];
    }
    return offset;
  }
  double Load(const void* data, int64_t at) const {
    if (p_.dtype == DType::kF32) return static_cast<const float*>(data)[at];
    return static_cast<float>(static_cast<const Bfloat16*>(data)[at]);
  }
  void Store(void* data, int64_t at, double value) const {
    if (p_.dtype == DType::kF32) {
      static_cast<float*>(data)[at] = static_cast<float>(value);
    } else {
      static_cast<Bfloat16*>(data)[at] = Bfloat16(static_cast<float>(value));
    }
  }

  // Calls f(offset of the place, offsets of the image's elements in its window).
  template <typename F>
  void ForEachPlace(F f) const {
    const auto& d = layouts_.places.dims;
    Index at{};
    for (at[0] = 0; at[0] < d[0]; ++at[0]) {
      for (at[2] = 0; at[2] < d[2]; ++at[2]) {
        for (at[3] = 0; at[3] < d[3]; ++at[3]) {
          for (at[4] = 0; at[4] < d[4]; ++at[4]) f(Offset(layouts_.places, at), Covered(at));
        }
      }
    }
  }
  std::vector<int64_t> Covered(const Index& place) const {
    std::vector<int64_t> covered;
    const auto& [depth, height, width] = window_.size;
    for (int64_t tap = 0; tap < depth * height * width; ++tap) {
      const std::array<int64_t, 3> taps = {tap / (height * width), tap / width % height,
                                           tap % width};
      Index at = {place[0], 0, 0, 0, 0};
      bool inside = true;
      for (size_t i = 0; i < 3; ++i) {
        at[2 + i] = place[2 + i] * window_.stride[i] - window_.padding[i] + taps[i];
        inside = inside && at[2 + i] >= 0 && at[2 + i] < layouts_.image.dims[2 + i];
      }
      if (inside) covered.push_back(Offset(layouts_.image, at));
    }
    return covered;
  }
  double Divisor(const std::vector<int64_t>& covered) const {
    const auto& [depth, height, width] = window_.size;
    return static_cast<double>(p_.count_padding ? depth * height * width
                                                : static_cast<int64_t>(covered.size()));
  }
  void Forward(const PoolPointers& t) const {
    ForEachPlace([&](int64_t place, const std::vector<int64_t>& covered) {
      double sum = 0;
      for (const int64_t pixel : covered) sum += Load(t.image, pixel);
      Store(t.places, place, sum / Divisor(covered));
    });
  }
  void Gradient(const PoolPointers& t) const {
    std::vector<double> sums(static_cast<size_t>(layouts_.image.elements()));
    ForEachPlace([&](int64_t place, const std::vector<int64_t>& covered) {
      for (const int64_t pixel : covered) sums[pixel] += Load(t.places, place) / Divisor(covered);
    });
    for (size_t i = 0; i < sums.size(); ++i) Store(t.image, static_cast<int64_t>(i), sums[i]);
  }

  const PoolProblem p_;
  const PoolLayouts layouts_;
  const VolumeWindow window_;
  PoolLog* const log_;
};

class HostPools final : public PoolGraphs {
 public:
  explicit HostPools(PoolLog* log) : log_(log) {}
  CudnnOffer offer() const override { return {.version = 91900, .compute_capability = 90}; }
  std::string version() const override { return "plain loops"; }
  absl::StatusOr<std::unique_ptr<PoolGraph>> Build(const PoolProblem& problem,
                                                   int64_t workspace_bytes) override {
    log_->built.push_back(problem);
    log_->limits.push_back(workspace_bytes);
    if (!log_->build.ok()) return log_->build;
    return std::make_unique<HostPool>(problem, log_);
  }

 private:
  PoolLog* const log_;
};

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_TESTING_HOST_POOLS_H_
