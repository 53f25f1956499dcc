#include "plan/optimizers/rmsprop.h"

#include <utility>

#include "stage/cell/optimizer_parts.h"

namespace stagecoach {
namespace {

class RmsProp final : public Optimizer {
 public:
  RmsProp(const RmsPropSpec& spec, OptimizerParts parts)
      : spec_(spec),
        parameters_(std::move(parts.parameters)),
        square_(std::move(parts.slots[kSquareSlot])),
        velocity_(std::move(parts.slots[RmsVelocitySlot(spec.form)])),
        backend_(*parts.backend) {}

  void Apply(uint64_t, double learning_rate, double gradient_scale) override {
    const auto rate = static_cast<float>(learning_rate);
    const auto epsilon = static_cast<float>(spec_.epsilon);
    const bool tensorflow = spec_.form == RmsPropSpec::Form::kTensorFlow;
    std::vector<RmsPropArgs> all;
    all.reserve(parameters_.size());
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const Parameter& parameter = *parameters_[i];
      all.push_back({
          .value = parameter.value,
          .gradient = parameter.gradient,
          .square = square_[i].value,
          .velocity = velocity_.empty() ? Tensor() : velocity_[i].value,
          .gradient_scale = static_cast<float>(gradient_scale),
          .inner_rate = tensorflow ? rate : 1.0f,
          .outer_rate = tensorflow ? 1.0f : rate,
          .decay = static_cast<float>(spec_.decay),
          .momentum = static_cast<float>(spec_.momentum),
          .inside = tensorflow ? epsilon : 0.0f,
          .outside = tensorflow ? 0.0f : epsilon,
          .weight_decay = DecayOf(spec_.weight_decay, parameter),
          .compute = ComputeCopy(parameter),
      });
    }
    backend_.RmsPropAll(all);
  }

  std::vector<OptimizerSlot> slots() override {
    std::vector<OptimizerSlot> all = square_;
    all.insert(all.end(), velocity_.begin(), velocity_.end());
    return all;
  }

 private:
  const RmsPropSpec spec_;
  const std::vector<Parameter*> parameters_;
  const std::vector<OptimizerSlot> square_, velocity_;  // velocity: empty without momentum
  Backend& backend_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> RmsPropOptimizer(const OptimizerSpec& spec,
                                                            OptimizerParts parts) {
  return std::make_unique<RmsProp>(spec.As<RmsPropSpec>(), std::move(parts));
}

}  // namespace stagecoach
