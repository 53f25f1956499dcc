// HttpServer: the small HTTP side of a program: metrics, probes, and on the coordinator the page.
// Every answer carries the security headers: a strict content security policy (no inline script or
// style, nothing from elsewhere), no sniffing, no framing, no caching. No request of another site
// is allowed by CORS. A server on loopback refuses Host names that are not this machine's, so that
// a name which was bound anew to 127.0.0.1 does not open it to other sites' pages.
// Ownership: owns civetweb's context and the handlers.
// Threads:   handlers run on civetweb's threads, several at once; they may wait for a snapshot with
//            a deadline. A stream holds its thread until it ends; `max_streams` of them at most,
//            the next one is told 503. Handle... before Start; Stop ends the streams and joins.
// Units:     a request's head is at most 16 KiB (400), its body, which no handler reads, 64 KiB
//            (413). A reader that takes nothing for ten seconds is hung up on.
// Errors:    Start: UNAVAILABLE if the address cannot be bound.
#ifndef STAGECOACH_SERVICES_COMMON_HTTP_HTTP_SERVER_H_
#define STAGECOACH_SERVICES_COMMON_HTTP_HTTP_SERVER_H_

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace stagecoach {

struct HttpRequest {
  std::string method, path, query;             // path: decoded; query: as it came
  std::map<std::string, std::string> headers;  // by lower-case name
};

// The decoded value of a query parameter; nothing if absent or longer than 1 KiB.
std::optional<std::string> QueryValue(const HttpRequest& request, const std::string& name);

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};  // besides the usual ones
};

// One open answer without an end that is known before.
class HttpStream {
 public:
  virtual ~HttpStream() = default;
  virtual bool Write(const std::string& text) = 0;  // false: the reader is gone, or the server ends
  virtual bool Wait(std::chrono::nanoseconds time) = 0;  // false, at once: the server ends
};

struct HttpOptions {
  std::string listen;                   // "127.0.0.1:8000"; port 0: any free one
  int threads = 4;                      // besides those of streams
  int max_streams = 0;                  // 0: no streams
  std::vector<std::string> host_names;  // names of this machine, besides localhost and addresses
};

class HttpServer {
 public:
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
  int port() const;     // the bound one
  int streams() const;  // open now

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// May a request with this Host header come in through a loopback address? IP addresses cannot be
// bound anew, so they may; of names only localhost, its children, and host_names.
bool IsOwnHost(const std::string& host, const std::vector<std::string>& host_names);

// 405 naming the methods there are: "GET, HEAD".
HttpResponse MethodNotAllowed(const std::string& allowed);

// /metrics, /livez and /readyz, which every program has. Answers reveal nothing but the one word.
void HandleStandardPaths(HttpServer& server, std::function<std::string()> metrics,
                         std::function<bool()> live, std::function<bool()> ready);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_HTTP_HTTP_SERVER_H_
