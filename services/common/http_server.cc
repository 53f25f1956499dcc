#include "services/common/http_server.h"

#include <civetweb.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stagecoach {
namespace {

constexpr char kSecurityHeaders[] =
    "X-Content-Type-Options: nosniff\r\n"
    "Content-Security-Policy: default-src 'self'\r\n"
    "Cache-Control: no-store\r\n";

const char* ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 503:
      return "Service Unavailable";
    default:
      return "Status";
  }
}

void Send(mg_connection* connection, const HttpResponse& response, bool with_body) {
  const std::string head =
      absl::StrCat("HTTP/1.1 ", response.status, " ", ReasonOf(response.status),
                   "\r\nContent-Type: ", response.content_type,
                   "\r\nContent-Length: ", response.body.size(), "\r\n", kSecurityHeaders, "\r\n");
  mg_write(connection, head.data(), head.size());
  if (with_body) mg_write(connection, response.body.data(), response.body.size());
}

}  // namespace

struct HttpServer::State {
  std::map<std::string, Handler> handlers;  // fixed once started
  mg_context* context = nullptr;
  int port = 0;

  static int OnRequest(mg_connection* connection, void* data) {
    const auto* state = static_cast<const State*>(data);
    const mg_request_info* info = mg_get_request_info(connection);
    HttpRequest request{info->request_method, info->local_uri != nullptr ? info->local_uri : "",
                        info->query_string != nullptr ? info->query_string : ""};
    HttpResponse response;
    const bool head = request.method == "HEAD";
    const auto handler = state->handlers.find(request.path);
    if (handler == state->handlers.end()) {
      response = {404, "text/plain; charset=utf-8", "not found\n"};
    } else if (request.method != "GET" && !head) {
      response = {405, "text/plain; charset=utf-8", "only GET and HEAD\n"};
    } else {
      response = handler->second(request);
    }
    Send(connection, response, !head);
    return response.status;
  }
};

HttpServer::HttpServer() : state_(std::make_unique<State>()) {}
HttpServer::~HttpServer() { Stop(); }

void HttpServer::Handle(const std::string& path, Handler handler) {
  state_->handlers[path] = std::move(handler);
}

absl::Status HttpServer::Start(const std::string& listen) {
  const char* options[] = {"listening_ports",    listen.c_str(), "num_threads", "4",
                           "request_timeout_ms", "10000",        nullptr};
  mg_callbacks callbacks{};
  mg_init_library(0);
  state_->context = mg_start(&callbacks, nullptr, options);
  if (state_->context == nullptr) {
    mg_exit_library();
    return absl::UnavailableError(
        absl::StrCat("cannot serve HTTP on ", listen, ": is the port taken?"));
  }
  mg_server_port ports[1];
  std::memset(ports, 0, sizeof(ports));
  if (mg_get_server_ports(state_->context, 1, ports) == 1) state_->port = ports[0].port;
  mg_set_request_handler(state_->context, "**", State::OnRequest, state_.get());
  return absl::OkStatus();
}

void HttpServer::Stop() {
  if (state_->context == nullptr) return;
  mg_stop(state_->context);
  state_->context = nullptr;
  mg_exit_library();
}

int HttpServer::port() const { return state_->port; }

void HandleStandardPaths(HttpServer& server, std::function<std::string()> metrics,
                         std::function<bool()> live, std::function<bool()> ready) {
  const auto probe = [](std::function<bool()> good) {
    return [good = std::move(good)](const HttpRequest&) {
      HttpResponse response;
      if (good()) {
        response.body = "ok\n";
      } else {
        response.status = 503;
        response.body = "not ready\n";
      }
      return response;
    };
  };
  server.Handle("/livez", probe(std::move(live)));
  server.Handle("/readyz", probe(std::move(ready)));
  server.Handle("/metrics", [metrics = std::move(metrics)](const HttpRequest&) {
    return HttpResponse{200, "text/plain; version=0.0.4; charset=utf-8", metrics()};
  });
}

}  // namespace stagecoach
