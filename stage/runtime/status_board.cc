#include "stage/runtime/status_board.h"

namespace stagecoach {

void StatusBoard::Empty() {
  std::lock_guard<std::mutex> lock(mutex_);
  status_ = {.state = "empty"};
}

void StatusBoard::Loading(const Fence& fence, StageId stage) {
  words_.Tell("");
  std::lock_guard<std::mutex> lock(mutex_);
  status_.state = "loading";
  status_.fence = fence;
  status_.stage = stage;
}

void StatusBoard::Running(const Fence& fence, const LoadedCells& loaded) {
  std::lock_guard<std::mutex> lock(mutex_);
  status_.state = "running";
  status_.fence = fence;
  CopyLocked(loaded);
}

void StatusBoard::AtRest(const char* state, const LoadedCells& loaded) {
  std::lock_guard<std::mutex> lock(mutex_);
  status_.state = state;
  status_.fence = loaded.command.fence;
  status_.fence.step = loaded.next_step;
  CopyLocked(loaded);
}

void StatusBoard::Position(const LoadedCells& loaded) {
  std::lock_guard<std::mutex> lock(mutex_);
  CopyLocked(loaded);
}

// The links of all cells of the stage, that lead up or down the pipeline, count as one.
static void Add(const Link* link, std::optional<LinkStatistics>* sum) {
  if (link == nullptr) return;
  const LinkStatistics one = link->statistics();
  if (!sum->has_value()) {
    *sum = one;
    return;
  }
  (*sum)->sent_bytes += one.sent_bytes;
  (*sum)->received_bytes += one.received_bytes;
  (*sum)->sent_messages += one.sent_messages;
  (*sum)->received_messages += one.received_messages;
  (*sum)->stale_frames += one.stale_frames;
  (*sum)->inflight_messages += one.inflight_messages;
  (*sum)->connected = (*sum)->connected && one.connected;
}

void StatusBoard::CopyLocked(const LoadedCells& loaded) {
  status_.stage = loaded.command.stage;
  status_.bad_records = loaded.data == nullptr ? 0 : loaded.data->bad_records();
  status_.micro_batch = loaded.current_micro_batch();
  status_.waiting_for = loaded.WaitingFor();
  std::optional<LinkStatistics> upstream, downstream;
  for (const LoadedCells::One& cell : loaded.cells) {
    Add(cell.upstream.get(), &upstream);
    Add(cell.downstream.get(), &downstream);
  }
  if (upstream.has_value()) status_.upstream = upstream;
  if (downstream.has_value()) status_.downstream = downstream;
  // The executors dropped stale frames too; they do not tell the links apart.
  auto& counted = status_.upstream.has_value() ? status_.upstream : status_.downstream;
  if (counted.has_value()) counted->stale_frames += loaded.stale_messages();
}

StageStatus StatusBoard::Status() const {
  std::lock_guard<std::mutex> lock(mutex_);
  StageStatus status = status_;
  if (status.state == "loading") status.waiting_for = words_.words();
  return status;
}

}  // namespace stagecoach
