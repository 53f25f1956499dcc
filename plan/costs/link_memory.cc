#include "plan/costs/link_memory.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/errors/check.h"
#include "base/numbers/saturate.h"
#include "network/passes/tied.h"
#include "plan/schedules/pipeline_walk.h"

namespace stagecoach {
namespace {

// What a program has done at a boundary when it stands somewhere.
struct Done {
  size_t sent = 0, received = 0;  // messages
  size_t position = 0;            // the first with these numbers
};

// The beginning, and then one for each message.
std::vector<Done> DoneAt(int edge, const StageProgram& program) {
  std::vector<Done> all(1);
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const std::optional<LinkEnd> end = LinkEndOf(program.instructions[i]);
    if (!end.has_value() || end->edge != edge) continue;
    Done next = all.back();
    ++(end->sends ? next.sent : next.received);
    next.position = i + 1;
    all.push_back(next);
  }
  return all;
}

int64_t BytesOf(const std::vector<LinkMessage>& messages, size_t first, size_t last,
                size_t position) {
  int64_t bytes = 0;
  for (size_t i = first; i < last; ++i) bytes = SaturatingAdd(bytes, messages[i].At(position));
  return bytes;
}

}  // namespace

std::vector<LinkPeak> MostInLink(const StageProgram& stage, const StageProgram& neighbour, int edge,
                                 const BoundaryMessages& messages, int capacity) {
  const std::vector<Done> ours = DoneAt(edge, stage), theirs = DoneAt(edge, neighbour);
  CHECK_EQ(messages.sent.size(), ours.back().sent) << "messages sent";
  CHECK_EQ(messages.received.size(), ours.back().received) << "messages received";
  const size_t room = static_cast<size_t>(capacity);
  std::vector<LinkPeak> peaks(stage.instructions.size() + 1);
  size_t at = 0, first = 0;  // in `ours`, and the first of `theirs` that we have not waited beyond
  for (size_t i = 0; i < peaks.size(); ++i) {
    while (at + 1 < ours.size() && ours[at + 1].position <= i) ++at;
    const Done& us = ours[at];
    const auto behind = [&](const Done& them) {
      return them.received + room < us.sent || them.sent < us.received;
    };
    const auto possible = [&](const Done& them) {
      return them.received <= us.sent && them.sent <= us.received + room;
    };
    while (first < theirs.size() && behind(theirs[first])) ++first;
    for (size_t k = first; k < theirs.size() && possible(theirs[k]); ++k) {
      const Done& them = theirs[k];
      const int64_t bytes = SaturatingAdd(BytesOf(messages.sent, them.received, us.sent, i),
                                          BytesOf(messages.received, us.received, them.sent, i));
      if (k == first || bytes > peaks[i].bytes) peaks[i] = {bytes, them.position};
    }
  }
  return peaks;
}

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
