// TiedExchange: a cell's part in its network's tied parameters (network/passes/tied.h). Before a
// step it takes the values of owners in earlier cells into the cell's copies. It hands on the
// values that later cells use. After a step it takes the gradients of users in later cells, and
// adds those of its own owners. It hands on the others, with the gradients of its own users first.
// Ownership: borrows the cell's parameters and the back end; holds arrived tensors until
//            DropArrived.
// Threads:   executor thread only.
// Units and shapes: tuples in the order of CellTies. Values have the type that operations read,
//            gradients are float32. The tensor itself is sent, without a copy. It stays as it is
//            until the next update, which comes only after all stages have ended the step.
// Determinism: an owner's gradient is its own plus that of each user, layer by layer, for every
//            partition.
#ifndef STAGECOACH_STAGE_CELL_TIED_EXCHANGE_H_
#define STAGECOACH_STAGE_CELL_TIED_EXCHANGE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "network/passes/tied.h"
#include "stage/backends/backend.h"
#include "stage/layers/parameter.h"

namespace stagecoach {

class TiedExchange {
 public:
  // A copy in this cell of a value whose owner is in an earlier cell.
  struct Copy {
    ParameterSpec owner;  // the spec of the owner
    int owner_layer = 0;
    Tensor value;
  };

  using Parameters = std::map<ParameterUse, Parameter*>;
  // `parameters`: the cell's parameters that are tied, or that others are tied to.
  static absl::StatusOr<std::unique_ptr<TiedExchange>> Create(const Network& network,
                                                              int first_layer, int last_layer,
                                                              Parameters parameters,
                                                              Backend& backend);

  const CellTies& ties() const { return ties_; }
  // A load of the cell sets these too.
  const std::vector<Copy>& copies() const { return copies_; }

  void TakeValues(Tensors values);
  Tensors ValuesToSend() const;
  void TakeGradients(Tensors gradients);
  void AddGradients();
  Tensors GradientsToSend() const;
  void DropArrived();  // after tensors were sent on or added, or if the step is given up

 private:
  TiedExchange(CellTies ties, Parameters parameters, Backend& backend)
      : ties_(std::move(ties)), parameters_(std::move(parameters)), backend_(backend) {}
  Tensor GradientOf(const ParameterUse& user) const;

  const CellTies ties_;
  const Parameters parameters_;
  Backend& backend_;
  std::vector<Kernel> adds_;               // for each of ties().owned
  std::map<ParameterUse, Tensor> values_;  // by owner: the values that its users here read
  std::vector<Copy> copies_;
  std::map<ParameterUse, Tensor> arrived_values_;     // by owner; only to be sent on
  std::map<ParameterUse, Tensor> arrived_gradients_;  // by user
};

// `set` writes values into a float32 tensor; the copy gets them in its own type. A caller that sets
// parameters from outside sets the copies too, by their owners' names.
absl::Status SetCopy(const TiedExchange::Copy& copy, Backend& backend,
                     const std::function<absl::Status(const Tensor& wide)>& set);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_CELL_TIED_EXCHANGE_H_
