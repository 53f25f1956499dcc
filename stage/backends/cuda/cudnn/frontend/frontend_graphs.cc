// AttentionGraphs by cudnn-frontend, NVIDIA's header-only builder of cuDNN's graphs.
#include <cmath>
#include <unordered_map>
#include <utility>

#include "base/errors/status.h"
#include "stage/backends/cuda/cudnn/attention/attention_graphs.h"
#include "stage/backends/cuda/cudnn/frontend/attention_graph_builder.h"
#include "stage/backends/cuda/cudnn/frontend/frontend_calls.h"

namespace stagecoach::cudnn {
namespace {

class FrontendGraph final : public AttentionGraph {
 public:
  FrontendGraph(std::shared_ptr<fe::graph::Graph> graph, cudnnHandle_t handle, int64_t bytes,
                std::string version)
      : graph_(std::move(graph)), handle_(handle), bytes_(bytes), version_(std::move(version)) {}

  int64_t workspace_bytes() const override { return bytes_; }

  absl::Status Run(const AttentionPointers& p, void* workspace) override {
    std::unordered_map<int64_t, void*> pack = {
        {kQ, p.q}, {kK, p.k}, {kV, p.v}, {kOut, p.out}, {kLogSumExp, p.log_sum_exp}};
    if (p.d_out != nullptr) {
      pack.insert({{kDOut, p.d_out}, {kDQ, p.d_q}, {kDK, p.d_k}, {kDV, p.d_v}});
    }
    return Guard(version_, [&] {
      return ToStatus(graph_->execute(handle_, pack, workspace), version_, "attention");
    });
  }

 private:
  const std::shared_ptr<fe::graph::Graph> graph_;
  const cudnnHandle_t handle_;
  const int64_t bytes_;
  const std::string version_;
};

class FrontendGraphs final : public AttentionGraphs {
 public:
  FrontendGraphs(CudnnOffer offer, cudaStream_t stream) : offer_(offer), handle_(stream) {}

  CudnnOffer offer() const override { return offer_; }
  std::string version() const override { return FrontendVersion(offer_); }

  absl::StatusOr<std::unique_ptr<AttentionGraph>> Build(Direction direction,
                                                        const AttentionLayouts& layouts) override {
    using Result = absl::StatusOr<std::unique_ptr<AttentionGraph>>;
    return Guard(version(), [&]() -> Result {
      RETURN_IF_ERROR(handle_.Start(version()));
      auto graph = DescribeAttention(direction, layouts, offer_.compute_capability);
      // Each step by itself, so that the error says which one it was. The first plan of the
      // heuristics that can be built is taken: nothing is timed, so the choice repeats.
      RETURN_IF_ERROR(ToStatus(graph->validate(), version(), "checking the graph"));
      RETURN_IF_ERROR(
          ToStatus(graph->build_operation_graph(handle_.get()), version(), "building the graph"));
      RETURN_IF_ERROR(ToStatus(graph->create_execution_plans({fe::HeurMode_t::A}), version(),
                               "looking for an engine"));
      RETURN_IF_ERROR(ToStatus(graph->check_support(), version(), "checking the engine"));
      RETURN_IF_ERROR(ToStatus(graph->build_plans(), version(), "building the plan"));
      int64_t bytes = 0;
      RETURN_IF_ERROR(ToStatus(graph->get_workspace_size(bytes), version(), "asking for its size"));
      return std::make_unique<FrontendGraph>(std::move(graph), handle_.get(), bytes, version());
    });
  }

 private:
  const CudnnOffer offer_;
  CudnnHandle handle_;
};

}  // namespace

std::shared_ptr<fe::graph::Graph> DescribeAttention(Direction direction,
                                                    const AttentionLayouts& layouts,
                                                    int compute_capability) {
  auto graph = std::make_shared<fe::graph::Graph>();
  graph->set_io_data_type(fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT)
      .set_sm_version(compute_capability);
  const auto scale =
      static_cast<float>(1.0 / std::sqrt(static_cast<double>(layouts.packed.dims[3])));
  const auto q = graph->tensor(Describe("q", kQ, layouts.packed));
  const auto k = graph->tensor(Describe("k", kK, layouts.packed));
  const auto v = graph->tensor(Describe("v", kV, layouts.packed));
  if (direction == Direction::kForward) {
    const auto [out, log_sum_exp] = graph->sdpa(q, k, v,
                                                fe::graph::SDPA_attributes()
                                                    .set_name("attention")
                                                    .set_generate_stats(true)
                                                    .set_causal_mask(true)
                                                    .set_attn_scale(scale));
    Output(out, kOut, layouts.out);
    Output(log_sum_exp, kLogSumExp, layouts.log_sum_exp);
    log_sum_exp->set_data_type(fe::DataType_t::FLOAT);
    return graph;
  }
  const auto out = graph->tensor(Describe("out", kOut, layouts.out));
  const auto d_out = graph->tensor(Describe("d_out", kDOut, layouts.out));
  const auto log_sum_exp = graph->tensor(Describe("log_sum_exp", kLogSumExp, layouts.log_sum_exp)
                                             .set_data_type(fe::DataType_t::FLOAT));
  const auto [d_q, d_k, d_v] = graph->sdpa_backward(q, k, v, out, d_out, log_sum_exp,
                                                    fe::graph::SDPA_backward_attributes()
                                                        .set_name("attention_backward")
                                                        .set_causal_mask(true)
                                                        .set_attn_scale(scale)
                                                        .set_deterministic_algorithm(true));
  Output(d_q, kDQ, layouts.packed);
  Output(d_k, kDK, layouts.packed);
  Output(d_v, kDV, layouts.packed);
  return graph;
}

absl::Status CheckDescription(Direction direction, const AttentionLayouts& layouts,
                              int compute_capability) {
  return Guard("cuDNN", [&] {
    return ToStatus(DescribeAttention(direction, layouts, compute_capability)->validate(), "cuDNN",
                    "checking the graph");
  });
}

absl::StatusOr<std::unique_ptr<AttentionGraphs>> OpenAttentionGraphs(void* stream,
                                                                     int compute_capability) {
  ASSIGN_OR_RETURN(const CudnnLibrary library, UseCudnn());
  const CudnnOffer offer = {library.version, compute_capability};
  if (const std::string why = WhyNotOnThisCard(offer); !why.empty()) {
    return absl::FailedPreconditionError(why);
  }
  return std::make_unique<FrontendGraphs>(offer, static_cast<cudaStream_t>(stream));
}

}  // namespace stagecoach::cudnn
