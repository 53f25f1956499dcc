#include "plan/optimizers/lamb.h"

#include <cmath>
#include <utility>

#include "base/errors/status.h"
#include "stage/cell/optimizer_parts.h"

namespace stagecoach {
namespace {

class Lamb final : public Optimizer {
 public:
  Lamb(const LambSpec& spec, OptimizerParts parts, Tensor norms)
      : spec_(spec),
        parameters_(std::move(parts.parameters)),
        m_(std::move(parts.slots[kLambFirstSlot])),
        v_(std::move(parts.slots[kLambSecondSlot])),
        norms_(std::move(norms)),
        backend_(*parts.backend) {}

  void Apply(uint64_t applied, double learning_rate, double gradient_scale) override {
    const double t = static_cast<double>(applied) + 1.0;
    std::vector<LambArgs> all;
    all.reserve(parameters_.size());
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const Parameter& parameter = *parameters_[i];
      all.push_back({
          .value = parameter.value,
          .m = m_[i].value,
          .v = v_[i].value,
          .gradient = parameter.gradient,
          .norms = norms_.Slice(2 * static_cast<int64_t>(i), Shape{2}),
          .gradient_scale = static_cast<float>(gradient_scale),
          .learning_rate = static_cast<float>(learning_rate),
          .beta1 = static_cast<float>(spec_.beta1),
          .beta2 = static_cast<float>(spec_.beta2),
          .epsilon = static_cast<float>(spec_.epsilon),
          .weight_decay = DecayOf(spec_.weight_decay, parameter),
          .correction1 = static_cast<float>(1.0 - std::pow(spec_.beta1, t)),
          .correction2 = static_cast<float>(1.0 - std::pow(spec_.beta2, t)),
          .adapt = spec_.adapt_all || parameter.spec.decay,
          .compute = ComputeCopy(parameter),
      });
    }
    backend_.LambAll(all);
  }

  std::vector<OptimizerSlot> slots() override {
    std::vector<OptimizerSlot> all = m_;
    all.insert(all.end(), v_.begin(), v_.end());
    return all;
  }

 private:
  const LambSpec spec_;
  const std::vector<Parameter*> parameters_;
  const std::vector<OptimizerSlot> m_, v_;
  const Tensor norms_;  // F64, two a parameter
  Backend& backend_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> LambOptimizer(const OptimizerSpec& spec,
                                                         OptimizerParts parts) {
  const auto parameters = static_cast<int64_t>(parts.parameters.size());
  ASSIGN_OR_RETURN(Tensor norms, MakeTensor(parts.backend->allocator(), MemoryKind::kWorkspace,
                                            DType::kF64, Shape{2 * parameters}));
  return std::make_unique<Lamb>(spec.As<LambSpec>(), std::move(parts), std::move(norms));
}

}  // namespace stagecoach
