// CacheRoom: how much of a disk the cached parts of data sets take. Beyond the limit the parts go
// whose last use is longest ago, unless a process of this machine has them open. So the limit may be
// passed: training goes on, and the log says so once.
// Ownership: owns nothing but its counts.
// Threads:   thread-safe; calls wait for the file system, not for other processes.
// Units:     bytes that the file system has allocated.
#ifndef STAGECOACH_SERVICES_COMMON_DATA_SETS_CACHE_ROOM_H_
#define STAGECOACH_SERVICES_COMMON_DATA_SETS_CACHE_ROOM_H_

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace stagecoach {

class CacheRoom {
 public:
  struct Options {
    std::string folder;  // of the parts
    int64_t limit = 0;   // 0: half of what is free on the disk and what the parts take
    // Closes this process's own part, if no reader has it.
    std::function<void(const std::string& file_name)> close_idle;
  };
  explicit CacheRoom(Options options);

  // So much was stored. Evicts beyond the limit.
  void Added(int64_t bytes);
  // Whether so much more fits. To make room it evicts only parts that nobody used since then.
  bool Fits(int64_t bytes, double unused_since_unix_seconds);
  // On a full disk: evicts at least so much. False: nothing could go.
  bool Free(int64_t bytes);
  int64_t used() const;
  int64_t limit() const { return limit_; }

 private:
  struct Part {
    std::string file_name;
    int64_t bytes = 0;
    double used_at = 0;  // Unix seconds
  };
  std::vector<Part> Scan() const;  // the least recently used one first
  // Answers how many bytes went.
  int64_t Evict(int64_t target, double unused_since);

  const Options options_;
  int64_t limit_ = 0;
  mutable std::mutex mutex_;  // guards what follows
  int64_t used_ = 0;          // at the last look, and what was added since
  int64_t look_again_ = 0;    // when used_ passes it
  bool said_ = false;         // that the limit is passed
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_DATA_SETS_CACHE_ROOM_H_
