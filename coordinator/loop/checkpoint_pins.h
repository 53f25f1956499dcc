// CheckpointPins: the checkpoints of a job that others start from or read. Retention keeps them. A
// job pins one at most: the checkpoint where it began. While the job has no own checkpoint, it
// returns there. A submission pins a checkpoint from its first look at it until the answer. An
// export pins all from its start to its end.
// Ownership: values.
// Threads:   thread-safe. The search that pins a checkpoint and the removal of checkpoints run one
//            after the other, on that job's effects thread. So neither comes between the other's
//            steps.
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
  // Replaces the holder's earlier pins.
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
