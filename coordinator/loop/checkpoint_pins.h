// CheckpointPins: which checkpoints of a job others start from or read, so that retention keeps them. A job
// pins one at most: where it began, to which it returns as long as it has no own checkpoint. A
// submission pins one from the look at its checkpoint to the answer, an export all from its start to its end.
// Ownership: values.
// Threads:   thread-safe. What searches a job's checkpoints and pins one, and what removes them,
//            run one after the other on that job's effects thread, so that nothing goes in between.
#ifndef STAGECOACH_COORDINATOR_LOOP_CHECKPOINT_PINS_H_
#define STAGECOACH_COORDINATOR_LOOP_CHECKPOINT_PINS_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace stagecoach {

class CheckpointPins {
 public:
  // In place of what the holder had pinned before.
  void Pin(const std::string& holder, const std::string& job, std::vector<uint64_t> steps) {
    std::lock_guard<std::mutex> lock(mutex_);
    pins_[holder] = {job, std::move(steps)};
  }
  void Release(const std::string& holder) {
    std::lock_guard<std::mutex> lock(mutex_);
    pins_.erase(holder);
  }
  std::vector<uint64_t> Of(const std::string& job) const {  // steps
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<uint64_t> steps;
    for (const auto& [holder, pin] : pins_) {
      if (pin.first == job) steps.insert(steps.end(), pin.second.begin(), pin.second.end());
    }
    return steps;
  }

 private:
  mutable std::mutex mutex_;                                                   // guards pins_
  std::map<std::string, std::pair<std::string, std::vector<uint64_t>>> pins_;  // by holder
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_LOOP_CHECKPOINT_PINS_H_
