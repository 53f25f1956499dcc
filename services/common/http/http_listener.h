// HttpListener: the sockets of the HTTP side. One thread does all reading and writing. So a slow,
// silent or dripping peer costs a socket and no thread. A request is handed on when it has arrived
// whole, and the connection ends with the answer.
//
// Why Boost.Beast and not a server library: it parses HTTP with limits and leaves sockets and time
// to us. The servers of libmicrohttpd 0.9 and libevent (evhttp) only limit silence, so a dripping
// peer stays. They answer malformed requests by themselves, without our headers. At their cap they
// refuse new connections and do not close those that say nothing.
//
// Limits:    HttpLimits. At a cap a new connection takes the place of the oldest one that has not
//            yet sent its request, or has its answer. If the cap is a peer's, that connection is of
//            the same peer. If all are being answered, the new one is closed.
// Ownership: owns sockets and its thread. An exchange may outlive it; its answers then go nowhere.
// Threads:   OnRequest runs on its thread and must not block. See HttpExchange for the rest.
// Units:     a request's head has at most 16 KiB (400), its body 64 KiB (413), of stated length
//            (411).
// Errors:    Start: UNAVAILABLE if the address cannot be bound.
#ifndef STAGECOACH_SERVICES_COMMON_HTTP_HTTP_LISTENER_H_
#define STAGECOACH_SERVICES_COMMON_HTTP_HTTP_LISTENER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "services/common/http/http_message.h"
#include "services/common/process/open_files.h"

namespace stagecoach {

struct HttpLimits {
  std::chrono::milliseconds request{10'000};  // from accept to the request's last byte
  // Longest time without a byte taken. A whole answer has this and a second for each 16 KiB.
  std::chrono::milliseconds reader{10'000};
  int connections = 4096;  // also limited by the share of the files that this process may open
  FileShare files = FileShare::kHttp;
  int per_peer = 512;  // from one IPv4 address, or one /64 of IPv6
  // Bytes of answers that are not taken yet; a peer may have an eighth. Beyond that an answer is
  // 503, unless it is small.
  int64_t answer_bytes = 256 << 20;
};

// A request that waits for its answer. One thread at a time; never the listener's for Begin and
// Write, which wait for the reader.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;
  virtual const HttpRequest& request() const = 0;
  virtual void Answer(const HttpResponse& response) = 0;  // instead of the next three; to HEAD bare
  virtual bool Begin(const HttpResponse& head) = 0;       // an answer without a known end
  virtual bool Write(const std::string& text) = 0;        // false: the reader is gone
  virtual void End() = 0;
};

class HttpListener {
 public:
  using OnRequest = std::function<void(std::shared_ptr<HttpExchange>)>;

  HttpListener(const HttpLimits& limits, OnRequest on_request);
  ~HttpListener();  // Stop
  absl::Status Start(const std::string& listen);
  void CloseAll();  // takes no more and closes what there is: writes that wait fail
  void Stop();      // CloseAll, and joins: no thread may wait in Begin or Write
  int port() const;
  int connections() const;  // open now

 private:
  class Core;
  class Connection;
  const std::unique_ptr<Core> core_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_HTTP_HTTP_LISTENER_H_
