// CellDecoder: a cell's layers in the form that writes text token by token (network/passes/decoding.h).
// It reads the cell's parameters and has states of its own: the pool of keys and values, and what is
// held of each group's source.
// Ownership: shares the parameters' memory with the cell, which must not be trained meanwhile; borrows
//            the back end.
// Threads:   executor thread only.
// Units and shapes: a group is a micro-batch whose texts are written together: its samples, each with
//            the same number of rows. Tuples are those of WiresOfCell for source and target: loaded,
//            but for held values, then received; they give what is sent.
// Errors:    RESOURCE_EXHAUSTED from the allocator; the kernels'. A call in the wrong order is a
//            CHECK.
// Determinism: a row's result is a function of its token, its history and its sample's source, for
//            every cut. On the reference back end its bits do not depend on other rows. On others, the
//            number of rows of a step may change the last bits.
#ifndef STAGECOACH_STAGE_DECODING_CELL_DECODER_H_
#define STAGECOACH_STAGE_DECODING_CELL_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "network/passes/decoding.h"
#include "stage/cell/cell.h"

namespace stagecoach {

class CellDecoder {
 public:
  // Of the layers of the cell.
  static absl::StatusOr<std::unique_ptr<CellDecoder>> Create(const DecodingForm& form,
                                                             const Cell& cell, Backend& backend);

  // Runs the source of a group, and holds what its rows will read. The group is new or dropped.
  absl::StatusOr<Tensors> Begin(int group, Tensors inputs, const Binding& binding);
  // Runs rows of a group that has begun, or of a network without a source.
  absl::StatusOr<Tensors> Step(int group, Tensors inputs, const Binding& binding);
  // From now on the group has these of its samples, in this order.
  absl::Status Keep(int group, std::span<const int64_t> samples);
  void Drop(int group);

  const CellWires& source_wires() const { return source_.wires; }
  // Without held values.
  const CellWires& target_wires() const { return target_.wires; }

 private:
  struct Layer {
    std::unique_ptr<LayerRunner> runner;
    std::string label;
    int index = 0;
    std::vector<WireId> inputs, outputs;
  };
  struct Half {
    CellWires wires;
    std::vector<Layer> layers;
    std::vector<int> last_readers;  // by wire
  };
  struct HeldValue {
    WireId made, read;
    ValueType type;
  };
  struct Group {
    Binding binding;
    Tensors held;  // in the order of held_
  };

  explicit CellDecoder(Backend& backend) : backend_(backend) {}
  absl::Status AddLayers(const Network& network, const Cell& cell, LayerRunner::Values* values,
                         Half* half);
  absl::StatusOr<Tensors> Run(const Half& half, int group, Tensors inputs, const Binding& binding,
                              std::vector<Tensor>* table);

  Backend& backend_;
  Half source_, target_;
  std::vector<HeldValue> held_;
  std::map<int, Group> groups_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DECODING_CELL_DECODER_H_
