// AnswerBudget: limits the memory for answers that are not taken yet, in all and by peer. So a few
// slow readers of one address do not cause refusals for others.
// Threads: thread-safe.
// Units:   bytes.
#ifndef STAGECOACH_SERVICES_COMMON_HTTP_ANSWER_BUDGET_H_
#define STAGECOACH_SERVICES_COMMON_HTTP_ANSWER_BUDGET_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace stagecoach {

class AnswerBudget {
 public:
  // Answers up to this size always pass: probes, errors, small pages. Connections limit their
  // number.
  static constexpr int64_t kAlways = 16 << 10;
  static constexpr int64_t kPeerShare = 8;  // a peer's limit is this part of all

  explicit AnswerBudget(int64_t most) : most_(most) {}

  // False: no room, and nothing is taken. A peer's only answer may exceed its share.
  bool Take(const std::string& peer, int64_t bytes);
  void Give(const std::string& peer, int64_t bytes);

 private:
  const int64_t most_;
  std::mutex mutex_;  // guards what follows
  int64_t taken_ = 0;
  std::map<std::string, int64_t> of_peer_;  // of peers that have some
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_HTTP_ANSWER_BUDGET_H_
