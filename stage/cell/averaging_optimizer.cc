#include "stage/cell/averaging_optimizer.h"

#include <algorithm>
#include <utility>

#include "base/errors/status.h"
#include "plan/job/optimizer_slots.h"
#include "stage/backends/update_calls.h"

namespace stagecoach {
namespace {

class AveragingOptimizer final : public Optimizer {
 public:
  AveragingOptimizer(std::unique_ptr<Optimizer> inner, const AverageSpec& average, Tensors values,
                     std::vector<OptimizerSlot> slots, PreparedUpdates calls, Backend& backend)
      : inner_(std::move(inner)),
        spec_(average),
        values_(std::move(values)),
        slots_(std::move(slots)),
        calls_(std::move(calls)),
        backend_(backend) {}

  void Apply(uint64_t applied, double learning_rate, double gradient_scale) override {
    inner_->Apply(applied, learning_rate, gradient_scale);
    const double t = static_cast<double>(applied) + 1.0;
    double decay = spec_.decay;
    if (spec_.warmup) decay = std::min(decay, (1.0 + t) / (10.0 + t));
    calls_.Run({.learning_rate = 1.0 - decay});
  }

  std::vector<OptimizerSlot> slots() override {
    std::vector<OptimizerSlot> all = inner_->slots();
    all.insert(all.end(), slots_.begin(), slots_.end());
    return all;
  }

  // From 0 all the way: 0 + 1 * (value - 0) equals the value.
  void BeginAverages() override {
    for (const OptimizerSlot& slot : slots_) backend_.Fill(slot.value, 0.0f);
    calls_.Run({.learning_rate = 1.0});
  }

  void SwapAverages() override {
    std::vector<Backend::SwapArgs> all;
    for (size_t i = 0; i < values_.size(); ++i) all.push_back({values_[i], slots_[i].value});
    backend_.SwapAll(all);
  }

 private:
  const std::unique_ptr<Optimizer> inner_;
  const AverageSpec spec_;
  const Tensors values_;
  const std::vector<OptimizerSlot> slots_;
  const PreparedUpdates calls_;
  Backend& backend_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> MakeAveragingOptimizer(std::unique_ptr<Optimizer> inner,
                                                                  const AverageSpec& average,
                                                                  Tensors values,
                                                                  std::vector<OptimizerSlot> slots,
                                                                  Backend& backend) {
  std::vector<UpdateCall> all;
  for (size_t i = 0; i < values.size(); ++i) {
    all.push_back({.operation = kAverageUpdate, .inputs = {values[i]}, .adds = {slots[i].value}});
  }
  ASSIGN_OR_RETURN(PreparedUpdates calls, PreparedUpdates::Prepare(backend, std::move(all)));
  return std::make_unique<AveragingOptimizer>(std::move(inner), average, std::move(values),
                                              std::move(slots), std::move(calls), backend);
}

}  // namespace stagecoach
