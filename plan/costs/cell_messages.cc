#include "plan/costs/cell_messages.h"

#include <algorithm>
#include <vector>

#include "network/passes/tied.h"
#include "plan/costs/saturate.h"

namespace stagecoach {

ArrivingMessages MessagesOfCell(const Network& network, int first, int last, int64_t samples) {
  const CellWires wires = WiresOfCell(network, first, last);
  const CellTies ties = TiesOfCell(network, first, last);
  const auto of = [&](const std::vector<WireId>& some) {
    return SaturatingMultiply(samples, WireBytes(network, some));
  };
  ArrivingMessages most = {
      .from_before = std::max(of(wires.received), ValueBytes(network, ties.received_values))};
  // Behind the last layer is the objective, which is in the same cell.
  if (last == static_cast<int>(network.layers.size())) return most;
  most.from_behind =
      std::max(of(wires.received_gradients), GradientBytes(network, ties.received_gradients));
  return most;
}

}  // namespace stagecoach
