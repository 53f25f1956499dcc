#include "services/common/grpc/access/token_guesses.h"

#include <algorithm>

namespace stagecoach {

bool TokenGuesses::MayTry(const std::string& address, const std::string& digest) const {
  if (pace_.Has(address)) return true;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = tried_.find(address);
  return found != tried_.end() &&
         std::find(found->second.begin(), found->second.end(), digest) != found->second.end();
}

void TokenGuesses::Failed(const std::string& address, const std::string& digest) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (tried_.size() >= kMostAddresses && !tried_.contains(address)) tried_.clear();
  std::deque<std::string>& tried = tried_[address];
  const auto known = std::find(tried.begin(), tried.end(), digest);
  if (known != tried.end()) {
    tried.erase(known);
  } else {
    pace_.Take(address);
  }
  tried.push_back(digest);
  if (tried.size() > kMostTried) tried.pop_front();
}

}  // namespace stagecoach
