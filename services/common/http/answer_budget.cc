#include "services/common/http/answer_budget.h"

namespace stagecoach {

bool AnswerBudget::Take(const std::string& peer, int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (bytes > kAlways) {
    if (taken_ + bytes > most_) return false;
    const auto found = of_peer_.find(peer);
    if (found != of_peer_.end() && found->second + bytes > most_ / kPeerShare) return false;
  }
  taken_ += bytes;
  of_peer_[peer] += bytes;
  return true;
}

void AnswerBudget::Give(const std::string& peer, int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  taken_ -= bytes;
  const auto found = of_peer_.find(peer);
  if ((found->second -= bytes) == 0) of_peer_.erase(found);
}

}  // namespace stagecoach
