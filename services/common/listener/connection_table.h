// ConnectionTable: the open connections of a listener, and whether one more may come. There is a
// limit in all, and one for each address. gRPC 1.51 does not say when it closes a connection, so
// the table asks the kernel. A socket has an inode number of its own: as long as a descriptor shows
// it, the connection is open. The table asks when a limit is reached, or when a caller wants the
// number. If it found nothing closed, it does not ask again for kSecondsBetweenLooks. Otherwise a
// flood on a full server would cost a look at thousands of descriptors for each refusal. The thread
// that accepts would have time for nothing else.
// Ownership: owns no descriptor; never closes or changes one. Borrows the clock.
// Threads:   thread-safe.
// Errors:    none: a descriptor that cannot be looked at counts as closed.
#ifndef STAGECOACH_SERVICES_COMMON_LISTENER_CONNECTION_TABLE_H_
#define STAGECOACH_SERVICES_COMMON_LISTENER_CONNECTION_TABLE_H_

#include <sys/socket.h>
#include <sys/types.h>

#include <limits>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/threads/clock.h"
#include "services/common/process/server_flags.h"

namespace stagecoach {

// The key by which a connection is counted. For IPv4 it is the address, also if IPv6 carries it.
// For IPv6 it is the first half of the address: the holder of one such address has all of them. It
// is empty for loopback, which all programs of a machine share, and for other address families.
// Those count only in all.
std::string PeerKey(const sockaddr_storage& address);

class ConnectionTable {
 public:
  enum class Answer { kWelcome, kTooMany, kTooManyOfPeer };

  // A place that was given back may go unnoticed for this time.
  static constexpr double kSecondsBetweenLooks = 0.1;

  explicit ConnectionTable(const ConnectionLimits& limits, const Clock* clock = SystemClock::Get())
      : limits_(limits), clock_(clock) {}

  // Whether a connection from this peer may come. If it may, call Add.
  Answer Ask(const std::string& peer);
  // Adds an open connection; the owner of the descriptor closes it when it ends.
  void Add(int descriptor, const std::string& peer);
  int open();

 private:
  struct Connection {
    ino_t inode = 0;
    std::string peer;
  };

  static constexpr double kNever = std::numeric_limits<double>::lowest();

  struct Peer {
    int connections = 0;
    double vain_seconds = kNever;  // when a look at its connections found none closed
  };

  // Whether a connection of a peer, or of all (null), is gone; looks only if it is time to.
  void LookLocked(const std::string* peer, double* vain_seconds);
  bool SweepLocked(const std::string* peer);  // null: of all; false: all are open
  void ForgetOneLocked(const std::string& peer);

  const ConnectionLimits limits_;
  const Clock* const clock_;
  std::mutex mutex_;                                 // guards what follows
  std::unordered_map<int, Connection> connections_;  // by descriptor
  std::unordered_map<std::string, Peer> by_peer_;    // without the key ""
  double vain_seconds_ = kNever;                     // when a look at all found none closed
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_LISTENER_CONNECTION_TABLE_H_
