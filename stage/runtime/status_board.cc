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

void StatusBoard::Running(const Fence& fence, const LoadedCell& loaded) {
  std::lock_guard<std::mutex> lock(mutex_);
  status_.state = "running";
  status_.fence = fence;
  CopyLocked(loaded);
}

void StatusBoard::AtRest(const char* state, const LoadedCell& loaded) {
  std::lock_guard<std::mutex> lock(mutex_);
  status_.state = state;
  status_.fence = loaded.command.fence;
  status_.fence.step = loaded.next_step;
  CopyLocked(loaded);
}

void StatusBoard::Position(const LoadedCell& loaded) {
  std::lock_guard<std::mutex> lock(mutex_);
  CopyLocked(loaded);
}

void StatusBoard::CopyLocked(const LoadedCell& loaded) {
  status_.stage = loaded.command.stage;
  status_.bad_records = loaded.data == nullptr ? 0 : loaded.data->bad_records();
  status_.micro_batch = loaded.current_micro_batch();
  status_.waiting_for = loaded.WaitingFor();
  if (loaded.upstream != nullptr) status_.upstream = loaded.upstream->statistics();
  if (loaded.downstream != nullptr) status_.downstream = loaded.downstream->statistics();
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
