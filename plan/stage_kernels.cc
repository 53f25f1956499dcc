#include "plan/stage_kernels.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "network/passes/decoding.h"
#include "plan/costs/decoding_memory.h"
#include "plan/job/optimizer_slots.h"

namespace stagecoach {
namespace {

class KernelCheck {
 public:
  KernelCheck(int first, int last, int place, const StageKernels& kernels)
      : first_(first), last_(last), place_(place), kernels_(kernels) {}

  absl::Status CheckOperation(const std::string& operation, const std::string& use) const {
    const std::vector<std::string>& without = kernels_.without;
    if (std::find(without.begin(), without.end(), operation) == without.end()) {
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(
        absl::StrCat("plan: stage ", place_, " (", kernels_.stage, ", device ", kernels_.device,
                     ") has no kernel for operation \"", operation, "\" of ", use,
                     "; use stages with another device, or a job without this operation"));
  }

  // A stage prepares every list of a layer when it loads it.
  absl::Status CheckLayers(const Network& network) const {
    for (int i = first_; i < last_; ++i) {
      const NetworkLayer& layer = network.layers[static_cast<size_t>(i)];
      const LayerLists& lists = *layer.lists;
      const std::string use = absl::StrCat("layer ", i, ", ", layer.label);
      for (const CallList* list :
           {&lists.forward, &lists.forward_alone, &lists.evaluation, &lists.backward,
            &lists.input_gradient, &lists.weight_gradient, &lists.commit}) {
        for (const ListedCall& listed : list->calls) {
          RETURN_IF_ERROR(CheckOperation(listed.call.operation, use));
        }
      }
    }
    return absl::OkStatus();
  }

  bool Trains(const Network& network) const {
    for (int i = first_; i < last_; ++i) {
      for (const ParameterSpec& parameter : network.layers[static_cast<size_t>(i)].parameters) {
        if (parameter.trained) return true;
      }
    }
    return false;
  }

 private:
  const int first_, last_, place_;
  const StageKernels& kernels_;
};

}  // namespace

absl::Status CheckKernels(const JobSpec& spec, const Network& network, int first, int last,
                          int place, const StageKernels& kernels) {
  if (kernels.without.empty()) return absl::OkStatus();
  const KernelCheck check(first, last, place, kernels);
  RETURN_IF_ERROR(check.CheckLayers(network));
  if (spec.write.has_value() || spec.evaluation.translate.has_value()) {
    const absl::StatusOr<DecodingForm> form = DecodingOf(network, PoolRowsOf(spec, network));
    CHECK_OK(form.status());
    if (form->has_source()) RETURN_IF_ERROR(check.CheckLayers(form->source));
    RETURN_IF_ERROR(check.CheckLayers(form->target));
  }
  if (last == static_cast<int>(network.layers.size())) {
    RETURN_IF_ERROR(check.CheckOperation(network.objective.operation, "the loss"));
  }
  if (spec.write.has_value() || !check.Trains(network)) return absl::OkStatus();
  const TrainingSpec& training = spec.training;
  const Call update =
      OptimizerKinds().Named(training.optimizer.kind).Update(training.optimizer, true);
  RETURN_IF_ERROR(check.CheckOperation(update.operation, "training.optimizer"));
  if (training.average.decay <= 0) return absl::OkStatus();
  return check.CheckOperation(kAverageUpdate, "training.average");
}

}  // namespace stagecoach
