// ObjectiveRunner: the end of a pass, on the last stage: the loss of a micro-batch, its measures and the gradient that
// the backward begins with, in one pass over what the layers gave.
// Ownership: owns the sums of the mini-batch at hand; borrows the back end.
// Threads:   executor thread only.
// Units:     sums are over the terms of the loss; the gradient is that of the sum times `scale`.
// Errors:    RESOURCE_EXHAUSTED from the allocator; UNIMPLEMENTED from Create where the back end has no kernel.
#ifndef STAGECOACH_STAGE_CELL_OBJECTIVE_RUNNER_H_
#define STAGECOACH_STAGE_CELL_OBJECTIVE_RUNNER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "network/network.h"
#include "plan/measure.h"
#include "stage/backends/backend.h"
#include "stage/backends/kernel.h"
#include "stage/tensor/tensor.h"

namespace stagecoach {

class ObjectiveRunner {
 public:
  static absl::StatusOr<std::unique_ptr<ObjectiveRunner>> Create(const Network& network,
                                                                 Backend& backend);

  // A mini-batch of so many micro-batches; sums of the one before are gone. `scale` is not read by an evaluation.
  void Begin(int micro_batches, double scale);
  struct Targets {
    Tensor values, weights;  // weights where the objective has some
  };
  // Gives the gradient of `output`, in its place unless the backward reads the output again.
  absl::StatusOr<Tensor> Train(const ForwardContext& context, Tensor output, Targets targets);
  absl::Status Evaluate(const ForwardContext& context, Tensor output, Targets targets);
  struct Sums {
    std::vector<double> named;         // in the order of Objective::sums
    std::vector<ClassCounts> classes;  // where they are counted and a micro-batch had samples
  };
  // Of all micro-batches since Begin, added in ascending order. Waits for the device.
  Sums TakeSums();
  void Drop();  // after an abort

 private:
  struct Form {  // of the loss, with a gradient or without
    Kernel kernel;
    ValueType gradient;  // of the output
    int64_t sums = 0;    // with those of the classes
  };
  ObjectiveRunner(const Network& network, Backend& backend);
  absl::StatusOr<Form> Prepare(bool gradient) const;
  // Of the loss, but for the scale.
  std::vector<Tensor*> Inputs(Tensor* output, Targets* targets) const;
  absl::StatusOr<Tensor> NextSums(const Form& form, MicroBatchId id);  // where they go

  const ValueType output_;
  const Objective objective_;
  const DType dtype_;
  bool overwrites_ = false;
  Backend& backend_;
  Form training_, evaluation_;
  Tensor scale_;  // F32, one number
  double scale_value_ = 0;
  std::vector<bool> has_sums_;  // by micro-batch: those without samples have none
  Tensor sums_;  // F64 [micro-batches, sums of the form]: read back by one copy. From the first on
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_CELL_OBJECTIVE_RUNNER_H_
