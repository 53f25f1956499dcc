#include "stage/cell/optimizer.h"

#include <cmath>
#include <map>
#include <utility>
#include <variant>

#include "base/status.h"
#include "plan/optimizer_slots.h"

namespace stagecoach {
namespace {

// One slot for each parameter, zero.
absl::StatusOr<std::vector<OptimizerSlot>> MakeSlots(const std::vector<Parameter*>& parameters,
                                                     const std::string& slot, Backend& backend) {
  std::vector<OptimizerSlot> slots;
  slots.reserve(parameters.size());
  for (const Parameter* parameter : parameters) {
    const std::string name = SlotTensorName(slot, parameter->spec.name);
    ASSIGN_OR_RETURN(Tensor value, Annotate(MakeTensor(backend.allocator(), MemoryKind::kOptimizer,
                                                       DType::kF32, parameter->spec.shape),
                                            name));
    backend.Fill(value, 0.0f);
    slots.push_back({name, std::move(value)});
  }
  return slots;
}

float Decay(double weight_decay, const Parameter& parameter) {
  return parameter.spec.decay ? static_cast<float>(weight_decay) : 0.0f;
}

// The copy that operations read, where it is one.
Tensor Rounded(const Parameter& parameter) {
  return parameter.compute.buffer() == parameter.value.buffer() ? Tensor() : parameter.compute;
}

class AdamW final : public Optimizer {
 public:
  AdamW(const AdamWSpec& spec, std::vector<Parameter*> parameters, std::vector<OptimizerSlot> m,
        std::vector<OptimizerSlot> v, Backend& backend)
      : spec_(spec),
        parameters_(std::move(parameters)),
        m_(std::move(m)),
        v_(std::move(v)),
        backend_(backend) {}

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
          .weight_decay = Decay(spec_.weight_decay, parameter),
          .correction1 = static_cast<float>(1.0 - std::pow(spec_.beta1, t)),
          .correction2 = static_cast<float>(1.0 - std::pow(spec_.beta2, t)),
          .compute = Rounded(parameter),
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

class Sgd final : public Optimizer {
 public:
  // velocity: empty without momentum.
  Sgd(const SgdSpec& spec, std::vector<Parameter*> parameters, std::vector<OptimizerSlot> velocity,
      Backend& backend)
      : spec_(spec),
        parameters_(std::move(parameters)),
        velocity_(std::move(velocity)),
        backend_(backend) {}

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
          .weight_decay = Decay(spec_.weight_decay, parameter),
          .compute = Rounded(parameter),
      });
    }
    backend_.SgdAll(all);
  }

  std::vector<OptimizerSlot> slots() override { return velocity_; }

 private:
  const SgdSpec spec_;
  const std::vector<Parameter*> parameters_;
  const std::vector<OptimizerSlot> velocity_;
  Backend& backend_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(const OptimizerSpec& spec,
                                                         std::vector<Parameter*> parameters,
                                                         Backend& backend) {
  std::map<std::string, std::vector<OptimizerSlot>> slots;
  for (const std::string& name : OptimizerSlots(spec)) {
    ASSIGN_OR_RETURN(slots[name], MakeSlots(parameters, name, backend));
  }
  struct Visitor {
    std::vector<Parameter*>& parameters;
    std::map<std::string, std::vector<OptimizerSlot>>& slots;
    Backend& backend;
    std::unique_ptr<Optimizer> operator()(const AdamWSpec& adamw) const {
      return std::make_unique<AdamW>(adamw, std::move(parameters),
                                     std::move(slots[kFirstMomentSlot]),
                                     std::move(slots[kSecondMomentSlot]), backend);
    }
    std::unique_ptr<Optimizer> operator()(const SgdSpec& sgd) const {
      return std::make_unique<Sgd>(sgd, std::move(parameters), std::move(slots[kVelocitySlot]),
                                   backend);
    }
  };
  return std::visit(Visitor{parameters, slots, backend}, spec);
}

}  // namespace stagecoach
