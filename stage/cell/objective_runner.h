// ObjectiveRunner: the end of a pass, on the last stage: the loss of a micro-batch, its measures and the gradient that
// the backward begins with, in one pass over what the layers gave. An auxiliary output has a pass of its own.
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
  // Of the tuple Objective::outputs(). Gives the gradients of those that have one, each in its output's place unless
  // the backward reads the output again.
  absl::StatusOr<Tensors> Train(const ForwardContext& context, Tensors outputs, Targets targets);
  // Of Objective::output alone.
  absl::Status Evaluate(const ForwardContext& context, Tensor output, Targets targets);
  struct Sums {
    std::vector<double> named;         // in the order of Objective::sums, of the output
    double auxiliary = 0;              // of the auxiliary output the loss, without its weight
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
  struct Compared {  // an output
    double weight = 1;
    bool has_gradient = false;
    bool overwrites = false;  // its gradient takes its place
    Tensor scale;             // F32, one number
    Tensor sums;  // F64 [micro-batches, sums of the form]: read back by one copy. From the first on
  };
  ObjectiveRunner(const Network& network, Backend& backend);
  absl::StatusOr<Form> Prepare(bool gradient) const;
  absl::StatusOr<Tensor> TrainOne(Compared& compared, const ForwardContext& context, Tensor output,
                                  Targets* targets);
  // Of the loss, but for the scale.
  std::vector<Tensor*> Inputs(Tensor* output, Targets* targets) const;
  absl::StatusOr<Tensor> NextSums(const Form& form, MicroBatchId id,
                                  Compared* compared);        // where they go
  std::vector<double> Total(const Compared& compared) const;  // empty: it was compared with nothing

  const ValueType output_;
  const Objective objective_;
  const DType dtype_;
  Backend& backend_;
  Form training_, evaluation_;
  std::vector<Compared> compared_;  // Objective::outputs()
  double scale_value_ = 0;
  std::vector<bool> has_sums_;  // by micro-batch: those without samples have none
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_CELL_OBJECTIVE_RUNNER_H_
