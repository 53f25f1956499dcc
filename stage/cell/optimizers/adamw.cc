#include "plan/optimizers/adamw.h"

#include <cmath>
#include <utility>

#include "stage/cell/optimizer_parts.h"

namespace stagecoach {
namespace {

class AdamW final : public Optimizer {
 public:
  AdamW(const AdamWSpec& spec, OptimizerParts parts)
      : spec_(spec),
        parameters_(std::move(parts.parameters)),
        m_(std::move(parts.slots[kFirstMomentSlot])),
        v_(std::move(parts.slots[kSecondMomentSlot])),
        backend_(*parts.backend) {}

  void Apply(uint64_t applied, double learning_rate, double gradient_scale) override {
    const double t = static_cast<double>(applied) + 1.0;
    std::vector<AdamWArgs> all;
    all.reserve(parameters_.size());
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const Parameter& parameter = *parameters_[i];
      all.push_back({
          .value = parameter.value,
          .gradient = parameter.gradient,
          .m = m_[i].value,
          .v = v_[i].value,
          .gradient_scale = static_cast<float>(gradient_scale),
          .learning_rate = static_cast<float>(learning_rate),
          .beta1 = static_cast<float>(spec_.beta1),
          .beta2 = static_cast<float>(spec_.beta2),
          .epsilon = static_cast<float>(spec_.epsilon),
          .weight_decay = DecayOf(spec_.weight_decay, parameter),
          .correction1 = static_cast<float>(1.0 - std::pow(spec_.beta1, t)),
          .correction2 = static_cast<float>(1.0 - std::pow(spec_.beta2, t)),
          .compute = ComputeCopy(parameter),
      });
    }
    backend_.AdamWAll(all);
  }

  std::vector<OptimizerSlot> slots() override {
    std::vector<OptimizerSlot> all = m_;
    all.insert(all.end(), v_.begin(), v_.end());
    return all;
  }

 private:
  const AdamWSpec spec_;
  const std::vector<Parameter*> parameters_;
  const std::vector<OptimizerSlot> m_, v_;
  Backend& backend_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> AdamWOptimizer(const OptimizerSpec& spec,
                                                          OptimizerParts parts) {
  return std::make_unique<AdamW>(spec.As<AdamWSpec>(), std::move(parts));
}

}  // namespace stagecoach
