// PoolGraphs by cuDNN's descriptors: of resampling, as cuDNN calls it, cudnn-frontend has the
// forward alone.
#include <array>
#include <utility>
#include <vector>

#include "base/errors/status.h"
#include "stage/backends/cuda/cudnn/frontend/descriptors.h"
#include "stage/backends/cuda/cudnn/frontend/frontend_calls.h"
#include "stage/backends/cuda/cudnn/frontend/pool_graph_builder.h"

namespace stagecoach::cudnn {
namespace {

using Properties = std::shared_ptr<fe::DeviceProperties>;

// Names of the tensors in a graph.
enum PoolTensorId : int64_t { kPoolImage = 1, kPoolPlaces };

Precision PrecisionOf(DType dtype) {
  return dtype == DType::kBF16 ? Precision::kBfloat16 : Precision::kFloat32;
}

absl::StatusOr<Descriptor> TensorOf(int64_t id, DType dtype, const VolumeLayout& layout,
                                    const std::string& version) {
  constexpr int64_t kAlignment = 16;  // of every tensor of a back end
  const cudnnDataType_t type = dtype == DType::kBF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
  Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
  tensor.Set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
  tensor.Set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 5, layout.dims.data());
  tensor.Set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 5, layout.strides.data());
  tensor.Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, kAlignment);
  RETURN_IF_ERROR(tensor.Finish(version, "describing a tensor"));
  return tensor;
}

std::array<cudnnFraction_t, 3> WholeNumbers(const std::array<int64_t, 3>& numbers) {
  return {{{numbers[0], 1}, {numbers[1], 1}, {numbers[2], 1}}};
}

absl::StatusOr<Descriptor> AverageOf(const PoolProblem& problem, const std::string& version) {
  const VolumeWindow window = WindowOf(problem);
  const auto size = WholeNumbers(window.size), stride = WholeNumbers(window.stride),
             padding = WholeNumbers(window.padding);
  Descriptor average(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
  average.Set(CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE,
              problem.count_padding ? CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING
                                    : CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING);
  average.Set(CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  average.Set(CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, CUDNN_PROPAGATE_NAN);
  average.Set(CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_TYPE_PADDING_MODE, CUDNN_ZERO_PAD);
  average.Set(CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, CUDNN_TYPE_INT64, int64_t{3});
  average.Set(CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, CUDNN_TYPE_FRACTION, 3, size.data());
  average.Set(CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, CUDNN_TYPE_FRACTION, 3, padding.data());
  average.Set(CUDNN_ATTR_RESAMPLE_POST_PADDINGS, CUDNN_TYPE_FRACTION, 3, padding.data());
  average.Set(CUDNN_ATTR_RESAMPLE_STRIDES, CUDNN_TYPE_FRACTION, 3, stride.data());
  RETURN_IF_ERROR(average.Finish(version, "describing a window"));
  return average;
}

absl::StatusOr<Descriptor> OperationOf(const PoolProblem& problem, const Descriptor& image,
                                       const Descriptor& places, const Descriptor& average,
                                       const std::string& version) {
  const bool forward = problem.pass == PoolPass::kForward;
  Descriptor operation(forward ? CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR
                               : CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR);
  operation.Set(
      forward ? CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC : CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC,
      image);
  operation.Set(
      forward ? CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC : CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC,
      places);
  operation.Set(
      forward ? CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC : CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DESC,
      average);
  // The result is written, and not added to what is there.
  operation.Set(
      forward ? CUDNN_ATTR_OPERATION_RESAMPLE_FWD_ALPHA : CUDNN_ATTR_OPERATION_RESAMPLE_BWD_ALPHA,
      CUDNN_TYPE_DOUBLE, 1.0);
  operation.Set(
      forward ? CUDNN_ATTR_OPERATION_RESAMPLE_FWD_BETA : CUDNN_ATTR_OPERATION_RESAMPLE_BWD_BETA,
      CUDNN_TYPE_DOUBLE, 0.0);
  RETURN_IF_ERROR(operation.Finish(version, "describing the operation"));
  return operation;
}

class FrontendPool final : public PoolGraph {
 public:
  FrontendPool(FoundPlan plan, cudnnHandle_t handle, std::string version)
      : plan_(std::move(plan)), handle_(handle), version_(std::move(version)) {}

  int64_t workspace_bytes() const override { return plan_.workspace_bytes; }
  std::string engine() const override { return absl::StrCat(plan_.engine); }

  absl::Status Run(const PoolPointers& p, void* workspace) override {
    if (handle_ == nullptr) {
      return absl::FailedPreconditionError("it was planned for a card that is not here");
    }
    return Guard(version_, [&] {
      const std::array<int64_t, 2> ids = {kPoolImage, kPoolPlaces};
      const std::array<void*, 2> pointers = {p.image, p.places};
      Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
      pack.Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 2, pointers.data());
      pack.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 2, ids.data());
      pack.Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
      RETURN_IF_ERROR(pack.Finish(version_, "average pool"));
      const cudnnStatus_t status = fe::detail::execute(handle_, plan_.get(), pack.get());
      return LibraryStatus(status, LastMessage(status), version_, "average pool");
    });
  }

 private:
  const FoundPlan plan_;
  const cudnnHandle_t handle_;
  const std::string version_;
};

class FrontendPools final : public PoolGraphs {
 public:
  // With properties: plans alone, and no card is touched.
  FrontendPools(CudnnOffer offer, cudaStream_t stream, Properties properties = nullptr)
      : offer_(offer), handle_(stream), properties_(std::move(properties)) {}

  CudnnOffer offer() const override { return offer_; }
  std::string version() const override { return FrontendVersion(offer_); }

  absl::StatusOr<std::unique_ptr<PoolGraph>> Build(const PoolProblem& problem,
                                                   int64_t workspace_bytes) override {
    using Result = absl::StatusOr<std::unique_ptr<PoolGraph>>;
    return Guard(version(), [&]() -> Result {
      if (properties_ == nullptr) RETURN_IF_ERROR(handle_.Start(version()));
      const PoolLayouts layouts = LayoutsOf(problem);
      ASSIGN_OR_RETURN(Descriptor image,
                       TensorOf(kPoolImage, problem.dtype, layouts.image, version()));
      ASSIGN_OR_RETURN(Descriptor places,
                       TensorOf(kPoolPlaces, problem.dtype, layouts.places, version()));
      ASSIGN_OR_RETURN(Descriptor average, AverageOf(problem, version()));
      ASSIGN_OR_RETURN(Descriptor operation,
                       OperationOf(problem, image, places, average, version()));
      std::vector<Descriptor> parts;
      for (Descriptor* part : {&image, &places, &average, &operation}) {
        parts.push_back(std::move(*part));
      }
      const PlanningFor where = {handle_.get(),
                                 properties_ == nullptr ? nullptr : properties_->get_ptr()};
      ASSIGN_OR_RETURN(FoundPlan plan,
                       FindPlan(std::move(parts), where, NotesBarredFor(PrecisionOf(problem.dtype)),
                                workspace_bytes, version()));
      return std::make_unique<FrontendPool>(std::move(plan), handle_.get(), version());
    });
  }

 private:
  const CudnnOffer offer_;
  CudnnHandle handle_;
  const Properties properties_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PoolGraphs>> PlanPoolsFor(const std::string& properties,
                                                         int compute_capability) {
  ASSIGN_OR_RETURN(const CudnnLibrary library, UseCudnn());
  auto device = std::make_shared<fe::DeviceProperties>();
  const fe::error_t error =
      device->deserialize(std::vector<uint8_t>(properties.begin(), properties.end()));
  if (error.is_bad()) return absl::InvalidArgumentError(error.err_msg);
  return std::make_unique<FrontendPools>(CudnnOffer{library.version, compute_capability}, nullptr,
                                         std::move(device));
}

absl::StatusOr<std::unique_ptr<PoolGraphs>> OpenPoolGraphs(void* stream, int compute_capability) {
  ASSIGN_OR_RETURN(const CudnnLibrary library, UseCudnn());
  const CudnnOffer offer = {library.version, compute_capability};
  if (const std::string why = WhyNoPools(offer); !why.empty()) {
    return absl::FailedPreconditionError(why);
  }
  return std::make_unique<FrontendPools>(offer, static_cast<cudaStream_t>(stream));
}

}  // namespace stagecoach::cudnn
