// HostGraphs: attention graphs computed by plain loops over the layouts that cuDNN would be given.
// They compare strides, slices, pointers and workspaces with the reference without a card. For
// tests.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_TESTING_HOST_GRAPHS_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_TESTING_HOST_GRAPHS_H_

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/errors/check.h"
#include "base/numbers/bfloat16.h"
#include "stage/backends/cuda/cudnn/attention/attention_graphs.h"

namespace stagecoach::cudnn {

// Calls for a test to check, and answers that it sets; outlives the graphs.
struct HostLog {
  std::vector<std::pair<Direction, AttentionLayouts>> built;
  int forward_runs = 0, backward_runs = 0;
  std::vector<void*> workspaces;   // workspace of each Run
  int64_t workspace_bytes = 64;    // that graphs ask for
  absl::Status forward, backward;  // results of Build
  absl::Status run;                // result of Run
};

class HostGraph final : public AttentionGraph {
 public:
  HostGraph(Direction direction, const AttentionLayouts& layouts, HostLog* log)
      : direction_(direction), layouts_(layouts), log_(log) {}

  int64_t workspace_bytes() const override { return log_->workspace_bytes; }

  absl::Status Run(const AttentionPointers& pointers, void* workspace) override {
    if (!log_->run.ok()) return log_->run;
    log_->workspaces.push_back(workspace);
    // Fills all of it, so that a sanitizer sees a workspace that is too small.
    std::memset(workspace, 0xff, static_cast<size_t>(log_->workspace_bytes));
    const bool forward = direction_ == Direction::kForward;
    ++(forward ? log_->forward_runs : log_->backward_runs);
    for (int64_t b = 0; b < layouts_.out.dims[0]; ++b) {
      for (int64_t h = 0; h < layouts_.out.dims[1]; ++h) {
        forward ? Forward(pointers, b, h) : Backward(pointers, b, h);
      }
    }
    return absl::OkStatus();
  }

 private:
  static int64_t Offset(const TensorLayout& l, int64_t b, int64_t h, int64_t s, int64_t d) {
    CHECK(b < l.dims[0] && h < l.dims[1] && s < l.dims[2] && d < l.dims[3]);
    return b * l.strides[0] + h * l.strides[1] + s * l.strides[2] + d * l.strides[3];
  }
  // One head as an array of [context, head width].
  static std::vector<double> Load(const TensorLayout& layout, const void* data, int64_t b,
                                  int64_t h) {
    std::vector<double> values;
    for (int64_t s = 0; s < layout.dims[2]; ++s) {
      for (int64_t d = 0; d < layout.dims[3]; ++d) {
        values.push_back(
            static_cast<float>(static_cast<const Bfloat16*>(data)[Offset(layout, b, h, s, d)]));
      }
    }
    return values;
  }
  static void Store(const TensorLayout& layout, void* data, int64_t b, int64_t h,
                    const std::vector<double>& values) {
    for (int64_t s = 0; s < layout.dims[2]; ++s) {
      for (int64_t d = 0; d < layout.dims[3]; ++d) {
        static_cast<Bfloat16*>(data)[Offset(layout, b, h, s, d)] =
            Bfloat16(static_cast<float>(values[s * layout.dims[3] + d]));
      }
    }
  }
  double Dot(const std::vector<double>& x, int64_t i, const std::vector<double>& y,
             int64_t j) const {
    double sum = 0;
    for (int64_t d = 0; d < width(); ++d) sum += x[i * width() + d] * y[j * width() + d];
    return sum;
  }
  void Add(double factor, const std::vector<double>& x, int64_t i, std::vector<double>& y,
           int64_t j) const {
    for (int64_t d = 0; d < width(); ++d) y[j * width() + d] += factor * x[i * width() + d];
  }
  int64_t context() const { return layouts_.out.dims[2]; }
  int64_t width() const { return layouts_.out.dims[3]; }
  double scale() const { return 1.0 / std::sqrt(static_cast<double>(width())); }

  void Forward(const AttentionPointers& p, int64_t b, int64_t h) const {
    const auto q = Load(layouts_.packed, p.q, b, h), k = Load(layouts_.packed, p.k, b, h);
    const auto v = Load(layouts_.packed, p.v, b, h);
    std::vector<double> out(q.size());
    for (int64_t i = 0; i < context(); ++i) {
      double sum = 0;
      for (int64_t j = 0; j <= i; ++j) {
        const double e = std::exp(scale() * Dot(q, i, k, j));
        sum += e;
        Add(e, v, j, out, i);
      }
      for (int64_t d = 0; d < width(); ++d) out[i * width() + d] /= sum;
      static_cast<float*>(p.log_sum_exp)[Offset(layouts_.log_sum_exp, b, h, i, 0)] =
          static_cast<float>(std::log(sum));
    }
    Store(layouts_.out, p.out, b, h, out);
  }

  void Backward(const AttentionPointers& p, int64_t b, int64_t h) const {
    const auto q = Load(layouts_.packed, p.q, b, h), k = Load(layouts_.packed, p.k, b, h);
    const auto v = Load(layouts_.packed, p.v, b, h);
    const auto out = Load(layouts_.out, p.out, b, h), d_out = Load(layouts_.out, p.d_out, b, h);
    std::vector<double> d_q(q.size()), d_k(q.size()), d_v(q.size());
    for (int64_t i = 0; i < context(); ++i) {
      const double log_sum_exp =
          static_cast<const float*>(p.log_sum_exp)[Offset(layouts_.log_sum_exp, b, h, i, 0)];
      const double delta = Dot(d_out, i, out, i);
      for (int64_t j = 0; j <= i; ++j) {
        const double probability = std::exp(scale() * Dot(q, i, k, j) - log_sum_exp);
        const double d_score = scale() * probability * (Dot(d_out, i, v, j) - delta);
        Add(probability, d_out, i, d_v, j);
        Add(d_score, k, j, d_q, i);
        Add(d_score, q, i, d_k, j);
      }
    }
    Store(layouts_.packed, p.d_q, b, h, d_q);
    Store(layouts_.packed, p.d_k, b, h, d_k);
    Store(layouts_.packed, p.d_v, b, h, d_v);
  }

  const Direction direction_;
  const AttentionLayouts layouts_;
  HostLog* const log_;
};

class HostGraphs final : public AttentionGraphs {
 public:
  explicit HostGraphs(HostLog* log) : log_(log) {}
  CudnnOffer offer() const override { return {.version = 91900, .compute_capability = 90}; }
  std::string version() const override { return "plain loops"; }
  absl::StatusOr<std::unique_ptr<AttentionGraph>> Build(Direction direction,
                                                        const AttentionLayouts& layouts) override {
    const absl::Status& status = direction == Direction::kForward ? log_->forward : log_->backward;
    log_->built.emplace_back(direction, layouts);
    if (!status.ok()) return status;
    return std::make_unique<HostGraph>(direction, layouts, log_);
  }

 private:
  HostLog* const log_;
};

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_TESTING_HOST_GRAPHS_H_
