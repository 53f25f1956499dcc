#include "stage/data/read_ahead.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/threads/progress.h"

namespace stagecoach {
namespace {

// How often whoever waits looks whether others get on.
constexpr std::chrono::milliseconds kLook(100);
constexpr int kMostCourses = 2;  // of training, and of evaluation

}  // namespace

// Guarded by the mutex, but for the bytes of a sample, which belong to whoever makes it, and, once
// all are made, to whoever takes it.
struct ReadAhead::Batch {
  std::vector<Item> items;
  std::vector<std::byte> bytes;  // room is made by the first who makes a sample
  size_t next = 0;               // the first that nobody makes yet
  size_t made = 0;
  size_t failed_at = 0;  // if not ok: of the lowest
  absl::Status failure;
};

struct ReadAhead::Course {
  bool training = false;
  uint64_t next = 0;                           // that Take will want
  std::deque<std::shared_ptr<Batch>> batches;  // next, next + 1, ...
};

ReadAhead::ReadAhead(const Options& options, ItemsOf items_of, Make make)
    : options_(options), items_of_(std::move(items_of)), make_(std::move(make)) {
  for (int i = 0; i < options.threads; ++i) {
    threads_.emplace_back(absl::StrCat("decode-", i), [this] { Work(); });
  }
}

ReadAhead::~ReadAhead() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  for (Thread& thread : threads_) thread.Join();
}

// Makes one sample, of `only` if that is given; false: there is none.
bool ReadAhead::MakeOne(const std::shared_ptr<Batch>& only, std::unique_lock<std::mutex>* lock) {
  const std::shared_ptr<Batch> batch = only != nullptr    ? only
                                       : waiting_.empty() ? nullptr
                                                          : waiting_.front();
  if (batch == nullptr || batch->next == batch->items.size()) return false;
  const size_t i = batch->next++;
  if (batch->next == batch->items.size()) std::erase(waiting_, batch);
  if (batch->bytes.empty()) batch->bytes.resize(batch->items.size() * options_.image_bytes);
  const std::span<std::byte> image =
      std::span(batch->bytes).subspan(i * options_.image_bytes, options_.image_bytes);
  lock->unlock();
  absl::Status status = make_(batch->items[i], image);
  lock->lock();
  ++made_;
  ++batch->made;
  if (!status.ok() && (batch->failure.ok() || i < batch->failed_at)) {
    batch->failure = std::move(status);
    batch->failed_at = i;
  }
  if (batch->made == batch->items.size()) changed_.notify_all();
  return true;
}

void ReadAhead::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!closed_) {
    if (!MakeOne(nullptr, &lock)) {
      changed_.wait(lock, [this] { return closed_ || !waiting_.empty(); });
    }
  }
}

ReadAhead::Course& ReadAhead::CourseAt(bool training, uint64_t n) {
  const auto found = std::find_if(courses_.begin(), courses_.end(), [&](const Course& course) {
    return course.training == training && course.next == n;
  });
  if (found != courses_.end()) {
    courses_.splice(courses_.begin(), courses_, found);
  } else {
    courses_.push_front({.training = training, .next = n, .batches = {}});
  }
  // What is ahead of one that was not used for long is given up.
  int of_kind = 0;
  for (auto course = courses_.begin(); course != courses_.end();) {
    if (course->training != training || ++of_kind <= kMostCourses) {
      ++course;
      continue;
    }
    std::lock_guard<std::mutex> lock(mutex_);
    for (const std::shared_ptr<Batch>& batch : course->batches) std::erase(waiting_, batch);
    course = courses_.erase(course);
  }
  return courses_.front();
}

// The one that is wanted, and those behind it.
void ReadAhead::Extend(Course* course) {
  const size_t ahead = options_.threads > 0 ? options_.ahead : 0;
  size_t bytes = 0;
  for (const std::shared_ptr<Batch>& batch : course->batches) {
    bytes += batch->items.size() * options_.image_bytes;
  }
  bool added = false;
  while (course->batches.size() < 1 + ahead) {
    if (!course->batches.empty() && bytes >= options_.bytes_ahead) break;
    auto batch = std::make_shared<Batch>();
    batch->items = items_of_(course->training, course->next + course->batches.size());
    if (batch->items.empty() && !course->batches.empty()) break;
    bytes += batch->items.size() * options_.image_bytes;
    course->batches.push_back(batch);
    if (batch->items.empty() || options_.threads == 0) continue;
    std::lock_guard<std::mutex> lock(mutex_);
    waiting_.push_back(std::move(batch));
    added = true;
  }
  if (added) changed_.notify_all();
}

absl::StatusOr<std::vector<std::byte>> ReadAhead::Take(bool training, uint64_t n) {
  Course& course = CourseAt(training, n);
  Extend(&course);
  const std::shared_ptr<Batch> batch = std::move(course.batches.front());
  course.batches.pop_front();
  ++course.next;
  std::unique_lock<std::mutex> lock(mutex_);
  if (std::erase(waiting_, batch) > 0) waiting_.push_front(batch);  // before all others
  uint64_t seen = made_;
  while (batch->made < batch->items.size()) {
    if (!MakeOne(batch, &lock)) {
      changed_.wait_for(lock, kLook, [&] { return batch->made == batch->items.size(); });
    }
    if (std::exchange(seen, made_) != made_) TickProgress();
  }
  if (!batch->failure.ok()) return batch->failure;
  return std::move(batch->bytes);
}

}  // namespace stagecoach
