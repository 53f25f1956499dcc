// Turns: work that several askers have for one thread. One piece is with the thread at a time, and
// the askers take turns. An asker with much work delays itself, not the others.
// Ownership: owns what waits. A finished piece posts a call to Next(), so no piece may outlive it.
// Threads:   Add and Next: the job loop's. Pieces: where `run` puts them.
#ifndef STAGECOACH_COORDINATOR_LOOP_TURNS_H_
#define STAGECOACH_COORDINATOR_LOOP_TURNS_H_

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace stagecoach {

class Turns {
 public:
  using Work = std::function<void()>;
  // run: gives a piece to the thread that does the work. post: runs work on the job loop's thread,
  // after everything that the piece itself posted.
  Turns(std::function<void(Work)> run, std::function<void(Work)> post)
      : run_(std::move(run)), post_(std::move(post)) {}

  void Add(const std::string& asker, Work work) {
    waiting_[asker].push_back(std::move(work));
    if (!busy_) Next();
  }

 private:
  void Next() {
    busy_ = !waiting_.empty();
    if (!busy_) return;
    auto turn = waiting_.upper_bound(last_);
    if (turn == waiting_.end()) turn = waiting_.begin();
    last_ = turn->first;
    Work work = std::move(turn->second.front());
    turn->second.pop_front();
    if (turn->second.empty()) waiting_.erase(turn);
    run_([this, work = std::move(work), post = post_] {
      work();
      post([this] { Next(); });
    });
  }

  const std::function<void(Work)> run_, post_;
  std::map<std::string, std::deque<Work>> waiting_;  // by asker; none is empty
  std::string last_;                                 // whose turn it was
  bool busy_ = false;
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_LOOP_TURNS_H_
