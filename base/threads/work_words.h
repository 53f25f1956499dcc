// WorkWords: what a thread is at, in words for people, where its work may take minutes: "encodes
// a.txt: 41 %". Code at work calls TellWork() and knows no reader. The scope of its thread chooses
// the WorkWords, as for TickProgress() (base/threads/progress.h).
// Ownership: a scope borrows its WorkWords.
// Threads:   WorkWords: any; one mutex. TellWork tells the scope of the calling thread; without one
//            it does nothing. Scopes of a thread nest.
// Cost:      a lock and a copy; for pieces of work that take milliseconds.
#ifndef STAGECOACH_BASE_THREADS_WORK_WORDS_H_
#define STAGECOACH_BASE_THREADS_WORK_WORDS_H_

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace stagecoach {

class WorkWords {
 public:
  void Tell(std::string words);
  std::string words() const;  // empty: none were told, or that work is over

 private:
  mutable std::mutex mutex_;  // guards words_
  std::string words_;
};

// While it lives, TellWork on this thread tells `words`.
class WorkWordsScope {
 public:
  explicit WorkWordsScope(WorkWords* words);
  ~WorkWordsScope();
  WorkWordsScope(const WorkWordsScope&) = delete;
  WorkWordsScope& operator=(const WorkWordsScope&) = delete;

 private:
  WorkWords* const outer_;
};

void TellWork(std::string words);

// "encodes a.txt: 41 %" of what = "encodes a.txt", 41 of 100. Rounded down: only all of it is 100 %.
std::string ShareText(absl::string_view what, int64_t done, int64_t all);
// The percentage at the end of such a text, 0 to 100; nullopt: it has none.
std::optional<int> PercentIn(absl::string_view text);

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_THREADS_WORK_WORDS_H_
