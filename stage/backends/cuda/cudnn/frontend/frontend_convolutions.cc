// ConvolutionGraphs by cudnn-frontend.
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "base/errors/status.h"
#include "stage/backends/cuda/cudnn/convolution/convolution_graphs.h"
#include "stage/backends/cuda/cudnn/frontend/convolution_graph_builder.h"
#include "stage/backends/cuda/cudnn/frontend/frontend_calls.h"

namespace stagecoach::cudnn {
namespace {

using Properties = std::shared_ptr<fe::DeviceProperties>;

std::vector<fe::NumericalNote_t> NotesOf(Precision precision) {
  std::vector<fe::NumericalNote_t> notes;
  for (const cudnnBackendNumericalNote_t note : NotesBarredFor(precision)) {
    notes.push_back(fe::detail::convert_from_cudnn_type(note));
  }
  return notes;
}

// Engines that need libnvrtc or cuBLASLt are silently not offered where these are not found, so two
// machines with the same card and cuDNN would compute other bits.
std::vector<fe::BehaviorNote_t> OtherLibraries() {
  return {fe::BehaviorNote_t::RUNTIME_COMPILATION, fe::BehaviorNote_t::CUBLASLT_DEPENDENCY};
}

// "28 k2=4 k3=0" of "eng28_k2=4_k3=0".
std::string EngineText(const std::string& tag) {
  const size_t number = tag.find("eng");
  return absl::StrReplaceAll(number == std::string::npos ? tag : tag.substr(number + 3),
                             {{"_", " "}});
}

class FrontendConvolution final : public ConvolutionGraph {
 public:
  FrontendConvolution(std::shared_ptr<fe::graph::Graph> graph, cudnnHandle_t handle, int64_t bytes,
                      std::string engine, std::string version)
      : graph_(std::move(graph)),
        handle_(handle),
        bytes_(bytes),
        engine_(std::move(engine)),
        version_(std::move(version)) {}

  int64_t workspace_bytes() const override { return bytes_; }
  std::string engine() const override { return engine_; }

  absl::Status Run(const ConvolutionPointers& p, void* workspace) override {
    if (handle_ == nullptr) {
      return absl::FailedPreconditionError("it was planned for a card that is not here");
    }
    std::unordered_map<int64_t, void*> pack = {
        {kImage, p.image}, {kWeight, p.weight}, {kPlaces, p.places}};
    if (p.bias != nullptr) pack.emplace(kBias, p.bias);
    return Guard(version_, [&] {
      return ToStatus(graph_->execute(handle_, pack, workspace), version_, "convolution");
    });
  }

 private:
  const std::shared_ptr<fe::graph::Graph> graph_;
  const cudnnHandle_t handle_;
  const int64_t bytes_;
  const std::string engine_, version_;
};

class FrontendConvolutions final : public ConvolutionGraphs {
 public:
  // With properties: plans alone, and no card is touched.
  FrontendConvolutions(CudnnOffer offer, cudaStream_t stream, Properties properties = nullptr)
      : offer_(offer), handle_(stream), properties_(std::move(properties)) {}

  CudnnOffer offer() const override { return offer_; }
  std::string version() const override { return FrontendVersion(offer_); }

  absl::StatusOr<std::unique_ptr<ConvolutionGraph>> Build(const ConvolutionProblem& problem,
                                                          int64_t workspace_bytes) override {
    using Result = absl::StatusOr<std::unique_ptr<ConvolutionGraph>>;
    return Guard(version(), [&]() -> Result {
      if (properties_ == nullptr) RETURN_IF_ERROR(handle_.Start(version()));
      auto graph = DescribeConvolution(problem, offer_.compute_capability);
      if (properties_ != nullptr) graph->set_device_properties(properties_);
      RETURN_IF_ERROR(Step(graph->validate(), "checking the graph"));
      RETURN_IF_ERROR(Step(graph->build_operation_graph(handle_.get()), "building the graph"));
      RETURN_IF_ERROR(
          Step(graph->create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}),
               "looking for an engine"));
      graph->deselect_numeric_notes(NotesOf(problem.precision));
      graph->deselect_behavior_notes(OtherLibraries());
      graph->deselect_workspace_greater_than(workspace_bytes);
      ASSIGN_OR_RETURN(const int64_t plan, BuildFirst(*graph));
      int64_t bytes = 0;
      RETURN_IF_ERROR(
          Step(graph->get_workspace_size_plan_at_index(plan, bytes), "asking for its size"));
      std::string tag;
      RETURN_IF_ERROR(Step(graph->get_plan_name_at_index(plan, tag), "asking for its name"));
      return std::make_unique<FrontendConvolution>(std::move(graph), handle_.get(), bytes,
                                                   EngineText(tag), version());
    });
  }

 private:
  absl::Status Step(const fe::error_t& error, const char* step) const {
    return ToStatus(error, version(), step);
  }

  // The first plan of the heuristics that may be taken and can be built: nothing is timed, so the
  // choice repeats. A plan that fails for what this machine lacks is no reason to take the next,
  // as another machine with such a card would take the first, with other bits.
  absl::StatusOr<int64_t> BuildFirst(fe::graph::Graph& graph) const {
    absl::Status first;
    for (int64_t plan = 0; plan < graph.get_execution_plan_count(); ++plan) {
      const absl::Status status = Step(graph.build_plan_at_index(plan), "building a plan");
      if (status.ok()) return plan;
      if (!absl::IsUnimplemented(status)) return status;
      if (first.ok()) first = status;
    }
    return absl::UnimplementedError(absl::StrCat(
        version(), " has no engine that may be taken; of the first: ", first.message()));
  }

  const CudnnOffer offer_;
  CudnnHandle handle_;
  const Properties properties_;
};

// Padding, stride and dilation, which all three kinds of attributes have.
template <typename Attributes>
Attributes WindowOf(const ConvolutionProblem& p, const char* name) {
  Attributes attributes;
  attributes.set_name(name);
  attributes.set_padding({p.padding_height, p.padding_width});
  attributes.set_stride({p.stride_height, p.stride_width});
  attributes.set_dilation({p.dilation_height, p.dilation_width});
  return attributes;
}

void DescribeForward(const ConvolutionProblem& p, const ConvolutionLayouts& layouts,
                     fe::graph::Graph& graph) {
  const auto image = graph.tensor(Describe("image", kImage, layouts.image));
  const auto weight = graph.tensor(Describe("weight", kWeight, layouts.weight));
  auto places =
      graph.conv_fprop(image, weight, WindowOf<fe::graph::Conv_fprop_attributes>(p, "convolution"));
  if (p.bias) {
    const auto bias = graph.tensor(Describe("bias", kBias, layouts.bias));
    places->set_dim({layouts.places.dims.begin(), layouts.places.dims.end()})
        .set_stride({layouts.places.strides.begin(), layouts.places.strides.end()});
    places = graph.pointwise(
        places, bias,
        fe::graph::Pointwise_attributes().set_name("bias").set_mode(fe::PointwiseMode_t::ADD));
  }
  Output(places, kPlaces, layouts.places);
}

}  // namespace

std::shared_ptr<fe::graph::Graph> DescribeConvolution(const ConvolutionProblem& problem,
                                                      int compute_capability) {
  auto graph = std::make_shared<fe::graph::Graph>();
  graph
      ->set_io_data_type(problem.dtype() == DType::kBF16 ? fe::DataType_t::BFLOAT16
                                                         : fe::DataType_t::FLOAT)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT)
      .set_sm_version(compute_capability);
  const ConvolutionLayouts layouts = LayoutsOf(problem);
  if (problem.pass == ConvolutionPass::kForward) {
    DescribeForward(problem, layouts, *graph);
    return graph;
  }
  const auto places = graph->tensor(Describe("places", kPlaces, layouts.places));
  if (problem.pass == ConvolutionPass::kInputGradient) {
    const auto weight = graph->tensor(Describe("weight", kWeight, layouts.weight));
    Output(graph->conv_dgrad(
               places, weight,
               WindowOf<fe::graph::Conv_dgrad_attributes>(problem, "convolution_input_gradient")),
           kImage, layouts.image);
    return graph;
  }
  const auto image = graph->tensor(Describe("image", kImage, layouts.image));
  const auto sums = graph->conv_wgrad(
      places, image,
      WindowOf<fe::graph::Conv_wgrad_attributes>(problem, "convolution_weight_gradient"));
  Output(sums, kWeight, layouts.weight);
  sums->set_data_type(fe::DataType_t::FLOAT);
  return graph;
}

absl::Status CheckDescription(const ConvolutionProblem& problem, int compute_capability) {
  return Guard("cuDNN", [&] {
    return ToStatus(DescribeConvolution(problem, compute_capability)->validate(), "cuDNN",
                    "checking the graph");
  });
}

absl::StatusOr<std::unique_ptr<ConvolutionGraphs>> PlanConvolutionsFor(
    const std::string& properties, int compute_capability) {
  ASSIGN_OR_RETURN(const CudnnLibrary library, UseCudnn());
  auto device = std::make_shared<fe::DeviceProperties>();
  const fe::error_t error =
      device->deserialize(std::vector<uint8_t>(properties.begin(), properties.end()));
  if (error.is_bad()) return absl::InvalidArgumentError(error.err_msg);
  return std::make_unique<FrontendConvolutions>(CudnnOffer{library.version, compute_capability},
                                                nullptr, std::move(device));
}

absl::StatusOr<std::unique_ptr<ConvolutionGraphs>> OpenConvolutionGraphs(void* stream,
                                                                         int compute_capability) {
  ASSIGN_OR_RETURN(const CudnnLibrary library, UseCudnn());
  const CudnnOffer offer = {library.version, compute_capability};
  if (const std::string why = WhyNoConvolutions(offer); !why.empty()) {
    return absl::FailedPreconditionError(why);
  }
  return std::make_unique<FrontendConvolutions>(offer, static_cast<cudaStream_t>(stream));
}

}  // namespace stagecoach::cudnn
