// ObjectiveRunner: the end of a pass, on the last stage. In one pass over the layers' outputs it
// makes the loss of a micro-batch, its measures and the gradient for the backward. An auxiliary
// output has a pass of its own.
// Ownership: owns the sums of the present mini-batch; borrows the back end.
// Threads:   executor thread only.
// Units:     sums are over the terms of the loss; the gradient is that of the sum times `scale`.
// Errors:    RESOURCE_EXHAUSTED from the allocator. UNIMPLEMENTED from Create if the back end has
//            no kernel. FAILED_PRECONDITION if a micro-batch has more parts than the first one of
//            its mini-batch.
#ifndef STAGECOACH_STAGE_CELL_OBJECTIVE_RUNNER_H_
#define STAGECOACH_STAGE_CELL_OBJECTIVE_RUNNER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "network/loss_call.h"
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

  // Begins a mini-batch of `micro_batches` and drops the sums of the one before. An evaluation does
  // not read `scale`.
  void Begin(int micro_batches, double scale);
  struct Targets {
    Tensor values, weights;  // weights if the objective has some
  };
  // Part `index` of a micro-batch's `count` parts. Each has its own place in the table of sums.
  struct Part {
    int64_t index, count;
  };
  // Adds the loss of the tuple Objective::outputs(). Returns the gradients of those that have one. A
  // gradient takes its output's memory unless the backward reads the output again.
  absl::StatusOr<Tensors> Train(const ForwardContext& context, Tensors outputs, Targets targets,
                                Part part = {0, 1});
  // Adds the loss of Objective::output alone.
  absl::Status Evaluate(const ForwardContext& context, Tensor output, Targets targets,
                        Part part = {0, 1});
  struct Sums {
    std::vector<double> named;         // in the order of Objective::sums, of the output
    double auxiliary = 0;              // loss of the auxiliary output, without its weight
    std::vector<ClassCounts> classes;  // if they are counted and a micro-batch had samples
  };
  // The sums of all micro-batches since Begin and their parts, added in ascending order. Waits for
  // the device.
  Sums TakeSums();
  void Drop();  // after an abort
  // The place, among the outputs, of the one that an evaluation compares too.
  size_t output_place() const { return objective_.output_place(); }

 private:
  struct Form {  // the loss, with a gradient or without
    Kernel kernel;
    ValueType gradient;  // of the output
    int64_t sums = 0;    // including those of the classes
  };
  struct Compared {  // an output
    double weight = 1;
    bool has_gradient = false;
    bool overwrites = false;  // its gradient takes its place
    Tensor scale;             // F32, one number
    // F64 [micro-batches, parts, sums of the form]: a small table, read back by one copy. The first
    // micro-batch allocates it.
    Tensor sums;
  };
  ObjectiveRunner(const Network& network, Backend& backend);
  absl::StatusOr<Form> Prepare(const LossCall& loss) const;
  absl::StatusOr<Tensor> TrainOne(Compared& compared, const ForwardContext& context, Tensor output,
                                  Targets* targets, Part part);
  // The inputs of the loss, without the scale.
  std::vector<Tensor*> Inputs(Tensor* output, Targets* targets) const;
  absl::StatusOr<Tensor> NextSums(const Form& form, MicroBatchId id, Part part,
                                  Compared* compared);        // the place for a part's sums
  std::vector<double> Total(const Compared& compared) const;  // empty: no loss was computed

  const Objective objective_;
  const DType dtype_;
  Backend& backend_;
  Form training_, evaluation_;
  std::vector<Compared> compared_;  // Objective::outputs()
  double scale_value_ = 0;
  int64_t micro_batches_ = 0;
  int64_t parts_ = 0;           // of the first micro-batch, an upper bound; 0: not known yet
  std::vector<bool> has_sums_;  // by micro-batch and part; false: it has no samples
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_CELL_OBJECTIVE_RUNNER_H_
