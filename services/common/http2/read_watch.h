// ReadWatch: a FrameWatch in front of all that gRPC reads in this process, as server and, behind
// TLS, as client. A connection with a fault ends: gRPC is told that reading failed. gRPC 1.51 shows
// nobody the bytes behind TLS. It reads them by OpenSSL's SSL_read, and those without TLS by
// recvmsg, out of shared libraries. This program defines both functions, and the dynamic linker
// finds the program's before a library's. They call the library's, and look at the bytes read.
// After a build with another gRPC, or with gRPC or OpenSSL linked into the program, run
// read_watch_test.cc.
// Threads:   thread-safe; a connection has one reader at a time.
// Errors:    StartReadWatch CHECKs that the names lead here. Faults are counted, and logged at most
//            once in kSecondsBetweenFaults, with the peer's address and, where it shows one, the
//            name of its certificate.
// See:       SECURITY.md, "Libraries".
#ifndef STAGECOACH_SERVICES_COMMON_HTTP2_READ_WATCH_H_
#define STAGECOACH_SERVICES_COMMON_HTTP2_READ_WATCH_H_

#include "services/common/http2/header_reader.h"
#include "services/common/observe/metrics.h"

namespace stagecoach {

inline constexpr double kSecondsBetweenFaults = 10;

// Watches every connection with TLS from now on. A second call changes nothing. It must be called
// before TLS credentials are made. No channel exists without them, so none is read before this. A
// server calls it too, because it may have no TLS.
void StartReadWatch();
bool ReadsAreWatched();

// A connection that a server accepted. gRPC makes the connection's SSL within the call that hands
// its descriptor over, and never shows the descriptor again. So for that call, on that thread, this
// object has the origin of the connection.
class Arrival {
 public:
  // may_authorize: checks the connection's tokens, if it shows no certificate. The connection's
  // reader calls it for as long as gRPC reads.
  Arrival(int descriptor, MayAuthorize may_authorize);
  ~Arrival();
  Arrival(const Arrival&) = delete;
  Arrival& operator=(const Arrival&) = delete;
};

// Watches also this connection without TLS, which a server accepted and nobody has read from.
void WatchReads(int descriptor);

// Numbers of connections that this process ended, by fault.
void WriteReadFaults(MetricWriter& writer);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_HTTP2_READ_WATCH_H_
