// Memory of a cell at work, from the lists of its layers and the wires between them. Layers may
// share kept values, so it is a function of the whole cell.
// Units and shapes: bytes of a micro-batch of a given number of samples. Values that calls make
//            once for all samples count once.
// Errors:    none. Sizes of a sample were limited when the network was made. A caller that asks for
//            many samples keeps the product below 2^63.
#ifndef STAGECOACH_NETWORK_MEMORY_CELL_MEMORY_H_
#define STAGECOACH_NETWORK_MEMORY_CELL_MEMORY_H_

#include <cstdint>
#include <vector>

#include "network/network.h"

namespace stagecoach {

struct CellMemory {
  std::vector<int64_t> loaded, received;  // tensors that come in, one by one
  std::vector<int64_t> rounded;           // what each of `loaded` was rounded from; 0: not rounded
  std::vector<int64_t> received_gradients;  // the same
  int64_t sent = 0, sent_gradients = 0;     // tuples that go out
  int64_t read = 0;  // part of the inputs that layers or loss read: kept for a recompute
  int64_t sent_beside_read = 0;  // part of `sent` outside `read`
  int64_t stash = 0;             // kept from forward to backward
  int64_t sent_beside_stash = 0;
  // The tuple of a forward that kept nothing, while the stash of its recompute is there. The
  // recompute makes the tuple again.
  int64_t sent_beside_recompute = 0;
  int64_t for_weights = 0;          // kept from the input part of a backward to its weight part
  int64_t sent_beside_weights = 0;  // part of `sent_gradients` outside `for_weights`
  // Peaks: they count all that the cell holds for the micro-batch, with its inputs.
  int64_t forward = 0;      // of a forward that keeps the inputs alone
  int64_t kept = 0;         // of a forward that keeps the stash
  int64_t recompute = 0;    // the same, with the inputs held until the end
  int64_t backward = 0;     // both parts; the gradients that come in and the stash counted
  int64_t input_part = 0;   // the same, of the input part alone
  int64_t weight_part = 0;  // of the weight part alone
  int64_t evaluation = 0;   // of a forward that keeps nothing
};
CellMemory MemoryOfCell(const Network& network, int first, int last, int64_t samples = 1);
// Memory of the last cell from layer `first` on, if its head goes by chunks
// (network/passes/head_chunks.h). It covers the layers in front of the head, perhaps none. The
// head's input counts as sent, and its gradient as received. The loss has the rest.
CellMemory MemoryInFrontOfHead(const Network& network, int first, int64_t samples = 1);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_MEMORY_CELL_MEMORY_H_
