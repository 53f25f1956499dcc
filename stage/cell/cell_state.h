// Cell::State: a cell's layers and the table of values between them. Private to
// stage/cell/cell*.cc: cell_create.cc places the layers, cell_state.cc runs them, cell.cc follows
// the life of each micro-batch. Ownership, threads: as Cell.
#ifndef STAGECOACH_STAGE_CELL_CELL_STATE_H_
#define STAGECOACH_STAGE_CELL_CELL_STATE_H_

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/threads/progress.h"
#include "stage/cell/cell.h"

namespace stagecoach {

// The states of a micro-batch, named as in the drawing of cell.h.
enum class Life { kAbsent, kBoundary, kStashed, kInputDone };

// A layer, and the places of its values in the table of the cell's wires.
struct PlacedLayer {
  std::unique_ptr<LayerRunner> runner;
  std::string label;
  std::vector<size_t> inputs, outputs;
  std::vector<bool> last;                                 // by input: nobody reads it afterwards
  std::vector<size_t> output_gradients, input_gradients;  // of values that have a gradient
  std::vector<Kernel> sums;                               // by input gradient: adds two shares
};

struct Cell::State {
  struct MicroBatch {
    Life life = Life::kAbsent;
    ForwardContext context;
    Tensors inputs;              // boundary only: the inputs that the layers or the loss read
    std::vector<Stash> stashes;  // one a layer
    Tensors outputs;             // last stage only, until Backward; or the head's input, until Loss
  };

  int first_layer = 0, last_layer = 0;
  bool last_of_network = false;
  bool has_backward = false;
  Backend* backend = nullptr;
  CellWires wires;
  std::map<WireId, size_t> places;     // in a table of all wires of the cell
  std::map<WireId, int> last_readers;  // in this cell; if sent, the number after the last layer
  std::vector<size_t> inputs, sent;    // places
  std::vector<size_t> read;            // the `inputs` that layers or the loss read
  std::vector<size_t> received_gradients, sent_gradients;
  std::vector<PlacedLayer> layers;
  std::unique_ptr<ObjectiveRunner> objective;  // on the last stage
  std::optional<ChunkedHead> head;             // the last of the layers, if the loss runs it
  std::unique_ptr<TiedExchange> ties;
  Tensor norms;  // F64, one a trained parameter in layer order: read back by one copy
  std::vector<MicroBatch> micro_batches;

  // The number of layers that run one after the other. A chunked head runs with the loss.
  size_t run_layers() const { return layers.size() - (head.has_value() ? 1 : 0); }

  // cell_create.cc
  // `last_run`: the number after the last layer that runs before the loss.
  void PlaceWires(const Network& network, int last_run);
  absl::Status PlaceLayer(const Network& network, const NetworkLayer& expanded,
                          std::unique_ptr<LayerRunner> runner);
  std::vector<size_t> PlacesOf(const std::vector<WireId>& ids);
  // This cell's parameters that are tied, or that others are tied to.
  std::map<ParameterUse, Parameter*> TiedUses(const Network& network) const;

  // cell_state.cc
  MicroBatch& Find(MicroBatchId id, Life expected);
  void Place(const std::vector<size_t>& at, Tensors tuple, Tensors* table) const;
  static Tensors Collect(const std::vector<size_t>& at, const Tensors& table);
  // Runs the layers on the table's values. stashes null: keeps nothing. If no backward will follow,
  // a layer folds its contribution to the states at once.
  absl::Status Run(Tensors* table, const ForwardContext& context, std::vector<Stash>* stashes);
  // Adds a layer's share of a gradient to the sum of the later layers' shares. Each sum is rounded
  // once, wherever the cuts are.
  absl::Status AddShare(const Kernel& add, const ForwardContext& context, Tensor share,
                        Tensor* sum) const;
  // The status of a layer, with the place of the error.
  absl::Status At(const char* phase, size_t i, const ForwardContext& context,
                  const absl::Status& status) const;
  std::vector<Parameter*> Parameters() const;  // tied ones too

  // One pass over run_layers() from the last to the first. `run` gives the gradients of a layer's
  // inputs for those of its outputs.
  template <typename RunLayer>
  absl::StatusOr<Tensors> RunBack(const char* phase, Tensors gradients,
                                  const ForwardContext& context, RunLayer run) {
    const CallsOfLists calls(*backend);
    Tensors table;
    Place(received_gradients, std::move(gradients), &table);
    for (size_t i = run_layers(); i-- > 0;) {
      const PlacedLayer& layer = layers[i];
      Tensors behind = Collect(layer.output_gradients, table);
      for (const size_t place : layer.output_gradients) table[place].Reset();
      absl::StatusOr<Tensors> shares = run(i, std::move(behind));
      if (!shares.ok()) return At(phase, i, context, shares.status());
      for (size_t k = 0; k < shares->size(); ++k) {
        Tensor& sum = table[layer.input_gradients[k]];
        const absl::Status status = AddShare(layer.sums[k], context, std::move((*shares)[k]), &sum);
        if (!status.ok()) return At(phase, i, context, status);
      }
      TickProgress();
    }
    return Collect(sent_gradients, table);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_CELL_CELL_STATE_H_
