// CheckpointPins: which checkpoints of a job others start from, so that retention keeps them. A job
// holds at most one pin: where it began, to which it returns as long as it has no own checkpoint. A
// submission holds one from the look at its checkpoint to the answer.
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
  void Pin(const std::string& holder, const std::string& job, uint64_t step) {
    std::lock_guard<std::mutex> lock(mutex_);
    pins_[holder] = {job, step};
  }
  void Release(const std::string& holder) {
    std::lock_guard<std::mutex> lock(mutex_);
    pins_.erase(holder);
  }
  std::vector<uint64_t> Of(const std::string& job) const {  // steps
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<uint64_t> steps;
    for (const auto& [holder, pin] : pins_) {
      if (pin.first == job) steps.push_back(pin.second);
    }
    return steps;
  }

 private:
  mutable std::mutex mutex_;                                      // guards pins_
  std::map<std::string, std::pair<std::string, uint64_t>> pins_;  // by holder
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_LOOP_CHECKPOINT_PINS_H_
