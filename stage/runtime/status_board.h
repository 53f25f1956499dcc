// StatusBoard: the loaded cell's state and position, copied for other threads.
// Threads:   writes on the executor thread, Status on any. One mutex guards the copy.
#ifndef STAGECOACH_STAGE_RUNTIME_STATUS_BOARD_H_
#define STAGECOACH_STAGE_RUNTIME_STATUS_BOARD_H_

#include <mutex>

#include "base/threads/work_words.h"
#include "stage/runtime/loaded_cells.h"
#include "stage/runtime/stage_runtime.h"

namespace stagecoach {

class StatusBoard {
 public:
  void Empty();
  void Loading(const Fence& fence, StageId stage);
  void Running(const Fence& fence, const LoadedCells& loaded);
  void AtRest(const char* state, const LoadedCells& loaded);  // "ready", "aborted"
  void Position(const LoadedCells& loaded);
  // What a load is at; its status tells them. Each load begins without any.
  WorkWords* words() { return &words_; }
  StageStatus Status() const;  // the fields that tell of the cell

 private:
  void CopyLocked(const LoadedCells& loaded);

  mutable std::mutex mutex_;  // guards status_
  StageStatus status_{.state = "empty"};
  WorkWords words_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_RUNTIME_STATUS_BOARD_H_
