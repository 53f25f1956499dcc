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

// Where a micro-batch is in its life; the names of the header's drawing.
enum class Life { kAbsent, kBoundary, kStashed, kInputDone };

// A layer, and where its values lie in the table of the cell's wires.
struct PlacedLayer {
  std::unique_ptr<LayerRunner> runner;
  std::string label;
  std::vector<size_t> inputs, outputs;
  std::vector<bool> last;  // of the inputs: nobody reads it afterwards
  std::vector<size_t> output_gradients, input_gradients;  // those that have one
  std::vector<Kernel> sums;  // of each of the input gradients: adds two shares
};

struct Cell::State {
  struct MicroBatch {
    Life life = Life::kAbsent;
    ForwardContext context;
    Tensors inputs;              // boundary only: those that the layers or the loss read
    std::vector<Stash> stashes;  // one a layer
    Tensors outputs;  // last stage only, until Backward, or what the head reads, until Loss
  };

  int first_layer = 0, last_layer = 0;
  bool last_of_network = false;
  bool has_backward = false;
  Backend* backend = nullptr;
  CellWires wires;
  std::map<WireId, size_t> places;     // in a table of all wires of the cell
  std::map<WireId, int> last_readers;  // here; of what is sent: behind the last layer
  std::vector<size_t> inputs, sent;    // places
  std::vector<size_t> read;            // those of `inputs` that layers read, or the loss
  std::vector<size_t> received_gradients, sent_gradients;
  std::vector<PlacedLayer> layers;
  std::unique_ptr<ObjectiveRunner> objective;  // on the last stage
  std::optional<ChunkedHead> head;             // the last of the layers, if the loss runs it
  std::unique_ptr<TiedExchange> ties;
  Tensor norms;  // F64, one a trained parameter in layer order: read back by one copy
  std::vector<MicroBatch> micro_batches;

  // Those that run one after the other: the others are the loss's.
  size_t run_layers() const { return layers.size() - (head.has_value() ? 1 : 0); }

  // cell_create.cc
  // `last_run`: behind the last layer that is run in front of the loss.
  void PlaceWires(const Network& network, int last_run);
  absl::Status PlaceLayer(const Network& network, const NetworkLayer& expanded,
                          std::unique_ptr<LayerRunner> runner);
  std::vector<size_t> PlacesOf(const std::vector<WireId>& ids);
  // Of this cell, those that are tied and those that others are tied to.
  std::map<ParameterUse, Parameter*> TiedUses(const Network& network) const;

  // cell_state.cc
  MicroBatch& Find(MicroBatchId id, Life expected);
  void Place(const std::vector<size_t>& at, Tensors tuple, Tensors* table) const;
  static Tensors Collect(const std::vector<size_t>& at, const Tensors& table);
  // Runs the layers on what lies in the table; stashes null: keeps nothing. What has no backward to
  // come is folded for the states at once.
  absl::Status Run(Tensors* table, const ForwardContext& context, std::vector<Stash>* stashes);
  // What layers behind gave comes first, and each sum is rounded once, wherever the cuts are.
  absl::Status AddShare(const Kernel& add, const ForwardContext& context, Tensor share,
                        Tensor* sum) const;
  // The status of a layer, with where it happened.
  absl::Status At(const char* phase, size_t i, const ForwardContext& context,
                  const absl::Status& status) const;
  std::vector<Parameter*> Parameters() const;  // tied ones too

  // One pass over the layers that run from the last to the first. `run` gives the gradients of a
  // layer's inputs for those of its outputs.
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
