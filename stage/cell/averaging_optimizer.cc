// An optimizer that keeps a moving average of each value beside it, of parameters and of states.
// Nothing that it does writes what the training reads.
#include <algorithm>
#include <utility>

#include "stage/cell/optimizer_parts.h"

namespace stagecoach {
namespace {

class AveragingOptimizer final : public Optimizer {
 public:
  AveragingOptimizer(std::unique_ptr<Optimizer> inner, const AverageSpec& average, Tensors values,
                     std::vector<OptimizerSlot> slots, Backend& backend)
      : inner_(std::move(inner)),
        spec_(average),
        values_(std::move(values)),
        slots_(std::move(slots)),
        backend_(backend) {}

  void Apply(uint64_t applied, double learning_rate, double gradient_scale) override {
    inner_->Apply(applied, learning_rate, gradient_scale);
    const double t = static_cast<double>(applied) + 1.0;
    double decay = spec_.decay;
    if (spec_.warmup) decay = std::min(decay, (1.0 + t) / (10.0 + t));
    MoveBy(static_cast<float>(1.0 - decay));
  }

  std::vector<OptimizerSlot> slots() override {
    std::vector<OptimizerSlot> all = inner_->slots();
    all.insert(all.end(), slots_.begin(), slots_.end());
    return all;
  }

  // From 0 all the way: 0 + 1 * (value - 0) is the value, to the bit.
  void BeginAverages() override {
    for (const OptimizerSlot& slot : slots_) backend_.Fill(slot.value, 0.0f);
    MoveBy(1.0f);
  }

  void SwapAverages() override {
    std::vector<Backend::SwapArgs> all;
    for (size_t i = 0; i < values_.size(); ++i) all.push_back({values_[i], slots_[i].value});
    backend_.SwapAll(all);
  }

 private:
  void MoveBy(float rate) {
    std::vector<AverageArgs> all;
    for (size_t i = 0; i < values_.size(); ++i) all.push_back({values_[i], slots_[i].value, rate});
    backend_.AverageAll(all);
  }

  const std::unique_ptr<Optimizer> inner_;
  const AverageSpec spec_;
  const Tensors values_;
  const std::vector<OptimizerSlot> slots_;
  Backend& backend_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeAveragingOptimizer(std::unique_ptr<Optimizer> inner,
                                                  const AverageSpec& average, Tensors values,
                                                  std::vector<OptimizerSlot> slots,
                                                  Backend& backend) {
  return std::make_unique<AveragingOptimizer>(std::move(inner), average, std::move(values),
                                              std::move(slots), backend);
}

}  // namespace stagecoach
