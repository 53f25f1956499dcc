// TokenGuesses: limits how fast one address may guess the tokens of a process, over all its ports:
// kStock guesses at once, then kPerSecond. A token is looked up only while its address has guesses
// left. Each unknown token costs one. The same unknown token, from the same address, is looked up
// again at no cost: the answer tells nothing new. So a client that goes on with an old token costs
// the others of its address one guess.
// A right token is looked up like any other one. If it passed while its address has no guesses
// left, guesses from there would be answered at any speed. Only a proof that cannot be guessed
// tells a right token from a right guess. Over HTTP it is a cookie, over gRPC the connection on
// which the token was admitted before (callers.h). These are never slowed.
// Ownership: borrows the clock.
// Threads:   thread-safe. Lookups at the same moment may be more than the stock allows, by one for
//            each thread.
// Errors:    none.
#ifndef STAGECOACH_SERVICES_COMMON_GRPC_ACCESS_TOKEN_GUESSES_H_
#define STAGECOACH_SERVICES_COMMON_GRPC_ACCESS_TOKEN_GUESSES_H_

#include <cstddef>
#include <deque>
#include <mutex>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "base/threads/clock.h"
#include "services/common/grpc/access/call_pace.h"

namespace stagecoach {

class TokenGuesses {
 public:
  static constexpr double kStock = 30, kPerSecond = 1;
  // Most unknown tokens remembered for an address, more than can be new in half a minute, and most
  // addresses. Beyond that all are forgotten, and a repeat costs a guess again.
  static constexpr size_t kMostTried = 64, kMostAddresses = 1024;

  explicit TokenGuesses(const Clock* clock = SystemClock::Get())
      : pace_({.per_second = kPerSecond, .stock = kStock}, clock) {}

  // Whether a token from this address may be looked up. address: as of PeerKey; digest: of the
  // token.
  bool MayTry(const std::string& address, const std::string& digest) const;
  // The token was looked up, and nobody has it.
  void Failed(const std::string& address, const std::string& digest);

 private:
  CallPace pace_;  // by address
  mutable std::mutex mutex_;
  absl::flat_hash_map<std::string, std::deque<std::string>> tried_;  // by address, newest last
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_GRPC_ACCESS_TOKEN_GUESSES_H_
