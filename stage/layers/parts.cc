#include "stage/layers/parts.h"

#include <string>
#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace stagecoach {

RandomStream RandomSource::At(const ForwardContext& context) const {
  return {context.seed, static_cast<uint32_t>(context.step),
          static_cast<uint32_t>(context.micro_batch.value), layer, operation};
}

LayerBuilder::LayerBuilder(const ExpandedModel& model, const ExpandedLayer& layer,
                           ParameterBlock block, Backend& backend)
    : context_(model.context), layer_(layer), block_(std::move(block)), backend_(backend) {}

ParameterSlice LayerBuilder::Take(std::initializer_list<std::string_view> paths) {
  const size_t first = next_parameter_;
  for (std::string_view path : paths) {
    CHECK_LT(next_parameter_, block_->size()) << "parameters of " << layer_.label;
    const std::string& name = (*block_)[next_parameter_++].spec.name;
    CHECK(std::string_view(name).ends_with(path)) << name << " stands where " << path << " belongs";
  }
  return {block_, first, paths.size()};
}

RandomSource LayerBuilder::TakeRandomSource() {
  CHECK_LT(next_operation_, 0x8000u) << "operations from 0x8000 draw initial values";
  return {static_cast<uint32_t>(layer_.index), next_operation_++};
}

LinearMap::LinearMap(Backend& backend, Parameter& weight, Parameter* bias)
    : backend_(backend), weight_(weight), bias_(bias) {}

absl::StatusOr<Tensor> LinearMap::Forward(const Tensor& x, const Tensor& residual) const {
  CHECK_EQ(x.shape().back(), in()) << "width into " << weight_.spec.name;
  ASSIGN_OR_RETURN(Tensor y, NewActivation(backend_, x.dtype(), {x.shape()[0], out()}));
  CHECK(!residual.valid() || residual.shape() == y.shape())
      << "a residual keeps the shape " << residual.shape().ToString();
  backend_.LinearForward({.x = x,
                          .weight = weight_.compute,
                          .bias = bias_ ? bias_->compute : Tensor(),
                          .y = y,
                          .residual = residual});
  return y;
}

absl::StatusOr<LinearMap::WithGelu> LinearMap::ForwardWithGelu(const Tensor& x) const {
  CHECK_EQ(x.shape().back(), in()) << "width into " << weight_.spec.name;
  ASSIGN_OR_RETURN(Tensor y, NewActivation(backend_, x.dtype(), {x.shape()[0], out()}));
  ASSIGN_OR_RETURN(Tensor activation, NewActivation(backend_, y.dtype(), y.shape()));
  backend_.LinearForward({.x = x,
                          .weight = weight_.compute,
                          .bias = bias_ ? bias_->compute : Tensor(),
                          .y = y,
                          .activation = activation});
  return WithGelu{std::move(y), std::move(activation)};
}

absl::StatusOr<Tensor> LinearMap::BackwardInput(const Tensor& dy, const Tensor& gelu_input) const {
  CHECK_EQ(dy.shape().back(), out()) << "gradient of " << weight_.spec.name;
  ASSIGN_OR_RETURN(Tensor dx, NewActivation(backend_, dy.dtype(), {dy.shape()[0], in()}));
  backend_.LinearBackwardInput({dy, weight_.compute, gelu_input, dx});
  return dx;
}

void LinearMap::BackwardWeight(const Tensor& dy, const Tensor& x) const {
  backend_.LinearBackwardWeight({dy, x, weight_.gradient, bias_ ? bias_->gradient : Tensor()});
}

absl::StatusOr<Tensor> NewActivation(Backend& backend, DType dtype, Shape shape) {
  return MakeTensor(backend.allocator(), MemoryKind::kActivations, dtype, std::move(shape));
}

Tensor TheOnly(Tensors tensors) {
  CHECK_EQ(tensors.size(), 1u) << "tensors in a tuple of one";
  return std::move(tensors.front());
}

}  // namespace stagecoach
