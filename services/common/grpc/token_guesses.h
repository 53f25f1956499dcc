// TokenGuesses: how fast the tokens of a process may be guessed from one address, whichever of its ports they come to: kStock
// at once, then kPerSecond. A token is looked up only while its address has some of that left, and each unknown one costs one.
// One that was unknown before, from the same address, is looked up again at no cost: the answer tells nothing that was not paid
// for. So a client that goes on with an old token costs the others of its address one guess, and no more.
// A right token is looked up like any other one. If it were let through while its address has nothing left, guesses there would be
// answered at any speed. A right token differs from a right guess only by what cannot be guessed: over HTTP a cookie, over gRPC
// the connection on which it was let in before (callers.h). These are not slowed by others.
// Ownership: borrows the clock.
// Threads:   thread-safe. Lookups at the same moment may be more than the stock allows, by one for each thread.
// Errors:    none.
#ifndef STAGECOACH_SERVICES_COMMON_GRPC_TOKEN_GUESSES_H_
#define STAGECOACH_SERVICES_COMMON_GRPC_TOKEN_GUESSES_H_

#include <cstddef>
#include <deque>
#include <mutex>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "services/common/grpc/call_pace.h"

namespace stagecoach {

class TokenGuesses {
 public:
  static constexpr double kStock = 30, kPerSecond = 1;
  // Unknown ones that are remembered of an address, more than can be new within half a minute; and of how many addresses. With
  // more of these all are forgotten, and a repeat costs one again.
  static constexpr size_t kMostTried = 64, kMostAddresses = 1024;

  explicit TokenGuesses(const Clock* clock = SystemClock::Get())
      : pace_({.per_second = kPerSecond, .stock = kStock}, clock) {}

  // Whether a token that comes from there may be looked up. address: as PeerKey has it; digest: of the token.
  bool MayTry(const std::string& address, const std::string& digest) const;
  // It was looked up, and nobody has it.
  void Failed(const std::string& address, const std::string& digest);

 private:
  CallPace pace_;  // by address
  mutable std::mutex mutex_;
  absl::flat_hash_map<std::string, std::deque<std::string>> tried_;  // by address, newest last
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_GRPC_TOKEN_GUESSES_H_
