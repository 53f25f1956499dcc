// Layer: f_i and its derivative b_i, with its parameters w_i (GPipe, section 2.1).
// Ownership: a layer owns its parameters; the caller owns the stash of each micro-batch.
// Threads:   executor thread only.
// Units and shapes: inputs and outputs are tuples; activations [rows, width]. Backward ADDS to
//            parameter gradients and RETURNS input gradients.
// Errors:    RESOURCE_EXHAUSTED from the allocator; shapes are CHECKed (the model was validated).
// Determinism: Forward is a function of (inputs, parameters, context): a recompute gives the same
// bits.
#ifndef STAGECOACH_STAGE_LAYERS_LAYER_H_
#define STAGECOACH_STAGE_LAYERS_LAYER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "plan/model_spec.h"
#include "stage/backends/backend.h"
#include "stage/tensor/tensor.h"

namespace stagecoach {

struct Parameter {
  ParameterSpec spec;
  Tensor value;     // F32, the master
  Tensor gradient;  // F32, same shape; zeroed after each apply
  // What operations read: value itself (the same buffer), or in bfloat16 a BF16 copy that the
  // optimizer writes with each apply and Cell::RefreshCompute after any other change of value.
  // Layer norm reads value.
  Tensor compute;
};

// Where in the run a forward happens: what random numbers it draws depends on nothing else.
struct ForwardContext {
  uint64_t seed = 0;
  uint64_t step = 0;
  MicroBatchId micro_batch;
  int64_t sequences = 0;  // of this micro-batch
  bool training = true;   // false: dropout is the identity
};

// What a layer keeps of one micro-batch from forward to backward; a composite keeps its children's.
struct Stash {
  ForwardContext context;
  Tensors tensors;
  std::vector<Stash> children;
};

class Layer {
 public:
  explicit Layer(Backend& backend) : backend_(backend) {}
  virtual ~Layer() = default;
  // stash == nullptr: keep nothing (the micro-batch will be recomputed, or this is an evaluation).
  virtual absl::StatusOr<Tensors> Forward(Tensors inputs, const ForwardContext& context,
                                          Stash* stash) = 0;
  // Input part: returns input gradients (empty for the embedding) and leaves in the stash what the
  // weight part needs. need_input_gradient false (first layer of the network): may return nothing.
  virtual absl::StatusOr<Tensors> BackwardInput(Tensors output_gradients, Stash* stash) = 0;
  virtual absl::Status BackwardWeight(Stash stash) = 0;
  // Both; a layer may override it to free memory earlier.
  virtual absl::StatusOr<Tensors> Backward(Tensors output_gradients, Stash stash);

  // The same, and the sum with the trunk that this layer is the end (forward) or the beginning
  // (backward) of a branch from: a tensor of the result's shape, which stays as it is. A layer
  // overrides what its last operation can do by itself. It then does so wherever it stands, so that
  // the bits depend on the layers alone; the split and the joint backward are overridden together.
  virtual absl::StatusOr<Tensors> ForwardOnto(const Tensor& trunk, Tensors inputs,
                                              const ForwardContext& context, Stash* stash);
  virtual absl::StatusOr<Tensors> BackwardInputOnto(const Tensor& trunk, Tensors output_gradients,
                                                    Stash* stash);
  virtual absl::StatusOr<Tensors> BackwardOnto(const Tensor& trunk, Tensors output_gradients,
                                               Stash stash);

  virtual std::span<Parameter> parameters() = 0;

 protected:
  Backend& backend() const { return backend_; }

 private:
  // By an operation of its own.
  absl::StatusOr<Tensors> Sum(absl::StatusOr<Tensors> branch, const Tensor& trunk);

  Backend& backend_;
};

// Allocates parameters and gradients (values not yet set) and builds the layer.
absl::StatusOr<std::unique_ptr<Layer>> MakeLayer(const ExpandedModel& model,
                                                 const ExpandedLayer& layer, Backend& backend);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LAYERS_LAYER_H_
