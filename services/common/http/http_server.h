// HttpServer: the small HTTP side of a program: metrics, probes, and on the coordinator the page.
// Every answer carries the security headers of http_message.h. CORS allows no request of another
// site. A server on loopback refuses Host names that are not this machine's. Otherwise a name that
// is rebound to 127.0.0.1 would open it to other sites' pages. http_gate.h decides about other
// callers.
// Ownership: owns its listener, its threads and the handlers.
// Threads:   sockets are the listener's (http_listener.h), so a slow peer costs no thread. Handlers
//            run on `threads` others, several at once; they may wait for a snapshot with a
//            deadline. A stream has a thread of its own until it ends. There are at most
//            `max_streams` streams; the next one gets 503. Call Handle... before Start; Stop ends
//            the streams and joins.
// Units:     limits of sizes and times are the listener's. kMostWaiting whole requests wait for a
//            thread; the next ones get 503.
// Errors:    Start: UNAVAILABLE if the address cannot be bound; as TokenFile::Open.
#ifndef STAGECOACH_SERVICES_COMMON_HTTP_HTTP_SERVER_H_
#define STAGECOACH_SERVICES_COMMON_HTTP_HTTP_SERVER_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "services/common/http/http_listener.h"
#include "services/common/http/http_message.h"

namespace stagecoach {

class TokenGuesses;

// One open answer whose length is not known in advance.
class HttpStream {
 public:
  virtual ~HttpStream() = default;
  virtual bool Write(const std::string& text) = 0;  // false: the reader is gone, or the server ends
  virtual bool Wait(std::chrono::nanoseconds time) = 0;  // false, at once: the server ends
};

struct HttpOptions {
  std::string listen;                   // "127.0.0.1:8000"; port 0: any free one
  std::string flag = "--http";          // what `listen` was given by, for errors
  int threads = 4;                      // besides those of streams
  int max_streams = 0;                  // 0: no streams
  std::vector<std::string> host_names;  // names of this machine, besides localhost and addresses
  std::string token_file;               // empty: everybody is let in
  std::shared_ptr<TokenGuesses> guesses = nullptr;  // of all ports of the process; null: its own
  HttpLimits limits;
};

class HttpServer {
 public:
  static constexpr int kMostWaiting = 1024;

  using Handler = std::function<HttpResponse(const HttpRequest&)>;
  using StreamBody = std::function<void(HttpStream&)>;
  // A body that is set makes a stream of an answer of status 200; `body` of the answer is unused.
  using StreamHandler = std::function<HttpResponse(const HttpRequest&, StreamBody*)>;

  HttpServer();
  ~HttpServer();                                          // Stop
  void Handle(const std::string& path, Handler handler);  // exactly this path; GET and HEAD only
  // Every path that begins so and has no handler of its own; the longest prefix wins. All methods
  // reach the handler.
  void HandleBelow(const std::string& prefix, Handler handler);
  // Exactly this path, GET only. `busy` is the answer while max_streams are open.
  void HandleStream(const std::string& path, StreamHandler handler, HttpResponse busy);
  absl::Status Start(const HttpOptions& options);
  absl::Status Start(const std::string& listen) { return Start(HttpOptions{.listen = listen}); }
  void Stop();
  int port() const;         // the bound one
  int streams() const;      // open now
  int connections() const;  // open now, streams and silent ones too

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// /metrics, /livez and /readyz, which every program has (probe_server.h). Answers of the latter two
// reveal nothing but the one word.
void HandleStandardPaths(HttpServer& server, std::function<std::string()> metrics,
                         std::function<bool()> live, std::function<bool()> ready);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_HTTP_HTTP_SERVER_H_
