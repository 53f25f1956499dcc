#include <atomic>
#include <mutex>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/threads/progress.h"
#include "base/threads/thread.h"
#include "stage/data/picture_source.h"

namespace stagecoach {

absl::Status ForEachPicture(int64_t threads, int64_t count,
                            const std::function<absl::Status(int64_t i)>& work) {
  std::atomic<int64_t> next{0}, failed_at{count};  // behind a failure nothing is begun
  std::mutex mutex;
  absl::Status failure;
  const auto go = [&] {
    for (int64_t i = next++; i < failed_at; i = next++) {
      const absl::Status status = work(i);
      TickProgress();  // counts on the calling thread alone
      if (status.ok()) continue;
      const std::lock_guard<std::mutex> lock(mutex);
      if (i > failed_at) continue;
      failed_at = i;
      failure = status;
    }
  };
  std::vector<Thread> others;
  for (int64_t i = 0; i < threads; ++i) others.emplace_back(absl::StrCat("decode-", i), go);
  go();
  others.clear();  // joins them
  return failure;
}

}  // namespace stagecoach
