// ReadAhead: makes the images of micro-batches on threads of its own, ahead of need.
//
// After Take(n) it expects Take(n + 1): it begins the next `ahead` micro-batches within
// `bytes_ahead`. Two readers of the same micro-batches, as the layers and the objective of an
// autoencoder, each have a course of their own. Take helps to make its micro-batch. The images are
// a pure function of the micro-batch, so neither threads nor earlier calls change them.
// Ownership: owns its threads, which end with it. `make` must stay valid as long.
// Threads:   Take from one thread; `make` is called on any, many at once.
// Units:     bytes of a sample's image.
// Errors:    Take: that of the micro-batch's first sample that cannot be made. It does not affect
//            other micro-batches.
// Progress:  Take ticks while samples are being made (base/threads/progress.h).
#ifndef STAGECOACH_STAGE_DATA_READ_AHEAD_H_
#define STAGECOACH_STAGE_DATA_READ_AHEAD_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/threads/thread.h"

namespace stagecoach {

class ReadAhead {
 public:
  // One sample's image.
  struct Item {
    bool training = false;
    uint64_t epoch = 0;  // of training
    int64_t sample = 0;
  };
  using Make = std::function<absl::Status(const Item&, std::span<std::byte> image)>;
  // The samples of micro-batch n, counted over mini-batches; empty after the last one.
  using ItemsOf = std::function<std::vector<Item>(bool training, uint64_t n)>;
  struct Options {
    int threads = 1;  // 0: only Take makes anything
    size_t image_bytes = 0;
    size_t ahead = 4;  // micro-batches
    size_t bytes_ahead = size_t{256} << 20;
  };
  ReadAhead(const Options& options, ItemsOf items_of, Make make);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  absl::StatusOr<std::vector<std::byte>> Take(bool training, uint64_t n);

 private:
  struct Batch;
  struct Course;
  Course& CourseAt(bool training, uint64_t n);
  void Extend(Course* course);
  bool MakeOne(const std::shared_ptr<Batch>& only, std::unique_lock<std::mutex>* lock);
  void Work();

  const Options options_;
  const ItemsOf items_of_;
  const Make make_;
  std::list<Course> courses_;  // Take's thread alone; the one used last in front
  std::mutex mutex_;           // guards the members below
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Batch>> waiting_;  // with samples that no thread makes yet
  uint64_t made_ = 0;                           // samples so far
  bool closed_ = false;
  std::vector<Thread> threads_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_READ_AHEAD_H_
