#include "plan/optimizers/sgd.h"

#include <utility>

#include "stage/cell/optimizer_parts.h"

namespace stagecoach {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(const SgdSpec& spec, OptimizerParts parts)
      : spec_(spec),
        parameters_(std::move(parts.parameters)),
        velocity_(std::move(parts.slots[kVelocitySlot])),
        backend_(*parts.backend) {}

  void Apply(uint64_t, double learning_rate, double gradient_scale) override {
    std::vector<SgdArgs> all;
    all.reserve(parameters_.size());
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const Parameter& parameter = *parameters_[i];
      all.push_back({
          .value = parameter.value,
          .gradient = parameter.gradient,
          .velocity = velocity_.empty() ? Tensor() : velocity_[i].value,
          .gradient_scale = static_cast<float>(gradient_scale),
          .learning_rate = static_cast<float>(learning_rate),
          .momentum = static_cast<float>(spec_.momentum),
          .weight_decay = DecayOf(spec_.weight_decay, parameter),
          .nesterov = spec_.nesterov && spec_.momentum != 0,
          .compute = ComputeCopy(parameter),
      });
    }
    backend_.SgdAll(all);
  }

  std::vector<OptimizerSlot> slots() override { return velocity_; }

 private:
  const SgdSpec spec_;
  const std::vector<Parameter*> parameters_;
  const std::vector<OptimizerSlot> velocity_;  // empty without momentum
  Backend& backend_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> SgdOptimizer(const OptimizerSpec& spec,
                                                        OptimizerParts parts) {
  return std::make_unique<Sgd>(spec.As<SgdSpec>(), std::move(parts));
}

}  // namespace stagecoach
