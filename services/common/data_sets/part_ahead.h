// PartAhead: the thread that fetches the rest of the parts that a job has opened, one after the
// other, so that training begins before a data set is complete.
// Ownership: owns its thread, which starts with the first wish.
// Threads:   calls from any thread, they do not wait; Shutdown from one, it joins.
#ifndef STAGECOACH_SERVICES_COMMON_DATA_SETS_PART_AHEAD_H_
#define STAGECOACH_SERVICES_COMMON_DATA_SETS_PART_AHEAD_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "base/threads/thread.h"
#include "services/common/data_sets/part_file.h"

namespace stagecoach {

class PartAhead {
 public:
  static constexpr size_t kMostWishes =
      65536;  // later ones are dropped: readers fetch as they need

  struct Wish {
    std::string set;
    PartKey key;
  };
  struct Work {
    std::function<void(const Wish&)> fetch;  // returns soon once the wish is not Wanted
    std::function<void()> tidy;              // the sets in use have changed
  };
  explicit PartAhead(Work work) : work_(std::move(work)) {}
  ~PartAhead() { Shutdown(); }

  // Once for each part, until the sets change.
  void Ask(const Wish& wish);
  // Drops the wishes of other sets, and has `tidy` called.
  void KeepOnly(const std::set<std::string>& sets);
  // Nothing is wanted until the sets change.
  void GiveUp();
  bool Wanted(const Wish& wish) const;
  void Shutdown();

 private:
  void Run();

  const Work work_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Wish> wishes_;
  std::set<std::string> asked_;                // names of their parts
  std::optional<std::set<std::string>> sets_;  // nullopt: any
  bool given_up_ = false, untidy_ = false, closed_ = false;
  Thread thread_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_DATA_SETS_PART_AHEAD_H_
