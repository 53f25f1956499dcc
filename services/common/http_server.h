// HttpServer: the small HTTP side of a program: metrics, probes, and on the coordinator the page.
// Ownership: owns civetweb's context and the handlers.
// Threads:   handlers run on civetweb's threads, several at once; they may wait for a snapshot with
// a
//            deadline. Handle before Start; Stop joins.
// Errors:    Start: UNAVAILABLE if the address cannot be bound.
#ifndef STAGECOACH_SERVICES_COMMON_HTTP_SERVER_H_
#define STAGECOACH_SERVICES_COMMON_HTTP_SERVER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"

namespace stagecoach {

struct HttpRequest {
  std::string method, path, query;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  HttpServer();
  ~HttpServer();                                          // Stop
  void Handle(const std::string& path, Handler handler);  // exactly this path; GET and HEAD only
  absl::Status Start(const std::string& listen);          // "127.0.0.1:8000"; port 0: any free one
  void Stop();
  int port() const;  // the bound one

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// /metrics, /livez and /readyz, which every program has. Answers reveal nothing but the one word.
void HandleStandardPaths(HttpServer& server, std::function<std::string()> metrics,
                         std::function<bool()> live, std::function<bool()> ready);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_HTTP_SERVER_H_
