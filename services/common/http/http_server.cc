#include "services/common/http/http_server.h"

#include <arpa/inet.h>
#include <civetweb.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "services/common/http/listen_knock.h"
#include "services/common/process/server_flags.h"

namespace stagecoach {
namespace {

constexpr char kSecurityHeaders[] =
    "X-Content-Type-Options: nosniff\r\n"
    "Content-Security-Policy: default-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; object-src 'none'\r\n"
    "X-Frame-Options: DENY\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Cache-Control: no-store\r\n"
    "Connection: close\r\n";
constexpr char kPlainText[] = "text/plain; charset=utf-8";
constexpr long long kMostBodyBytes = 64 << 10;
constexpr size_t kLongestValue = 1024;

const char* ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Status";
  }
}

std::string HeadOf(const HttpResponse& response) {
  std::string head = absl::StrCat("HTTP/1.1 ", response.status, " ", ReasonOf(response.status),
                                  "\r\nContent-Type: ", response.content_type, "\r\n");
  for (const auto& [name, value] : response.headers) {
    absl::StrAppend(&head, name, ": ", value, "\r\n");
  }
  return absl::StrCat(head, kSecurityHeaders);
}

bool WriteAll(mg_connection* connection, const std::string& text) {
  return mg_write(connection, text.data(), text.size()) == static_cast<int>(text.size());
}

void Send(mg_connection* connection, const HttpResponse& response, bool with_body) {
  const std::string head =
      absl::StrCat(HeadOf(response), "Content-Length: ", response.body.size(), "\r\n\r\n");
  if (WriteAll(connection, head) && with_body) WriteAll(connection, response.body);
}

HttpRequest RequestOf(const mg_request_info& info) {
  HttpRequest request{info.request_method,
                      info.local_uri != nullptr ? info.local_uri : "",
                      info.query_string != nullptr ? info.query_string : "",
                      {}};
  for (int i = 0; i < info.num_headers; ++i) {
    request.headers[absl::AsciiStrToLower(info.http_headers[i].name)] = info.http_headers[i].value;
  }
  return request;
}

// No handler reads a body, but one that is left unread resets the connection before the answer
// arrives.
std::optional<HttpResponse> DropBody(mg_connection* connection, const mg_request_info& info,
                                     const HttpRequest& request) {
  if (request.headers.count("transfer-encoding") > 0) {
    return HttpResponse{411, kPlainText, "state the length of the body\n"};
  }
  if (info.content_length > kMostBodyBytes) {
    return HttpResponse{413, kPlainText, "a body has at most 64 KiB here\n"};
  }
  char buffer[4096];
  for (long long left = info.content_length; left > 0;) {
    const int got = mg_read(connection, buffer, sizeof(buffer));
    if (got <= 0) break;
    left -= got;
  }
  return std::nullopt;
}

}  // namespace

struct HttpServer::State {
  struct Stream {
    StreamHandler handler;
    HttpResponse busy;
  };
  class Connection;

  std::map<std::string, Handler> handlers, prefixes;  // fixed once started, as the next two
  std::map<std::string, Stream> stream_handlers;
  HttpOptions options;
  bool checks_host = false;
  mg_context* context = nullptr;
  int port = 0;

  std::mutex mutex;  // guards the next two
  int streams = 0;
  bool stopping = false;
  std::condition_variable changed;

  static int OnRequest(mg_connection* connection, void* data);
  static int OnError(mg_connection* connection, int status, const char* message);
  HttpResponse Answer(const HttpRequest& request) const;
  int ServeStream(mg_connection* connection, const HttpRequest& request, const Stream& stream);
  bool TakeStream();
  void GiveStream();
};

// Ends with the server: writes of a stopping server fail after the last word.
class HttpServer::State::Connection final : public HttpStream {
 public:
  Connection(State* state, mg_connection* connection) : state_(state), connection_(connection) {}
  bool Write(const std::string& text) override { return WriteAll(connection_, text); }
  bool Wait(std::chrono::nanoseconds time) override {
    std::unique_lock<std::mutex> lock(state_->mutex);
    return !state_->changed.wait_for(lock, time, [this] { return state_->stopping; });
  }

 private:
  State* const state_;
  mg_connection* const connection_;
};

bool HttpServer::State::TakeStream() {
  std::lock_guard<std::mutex> lock(mutex);
  if (stopping || streams >= options.max_streams) return false;
  ++streams;
  return true;
}

void HttpServer::State::GiveStream() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    --streams;
  }
  changed.notify_all();
}

int HttpServer::State::ServeStream(mg_connection* connection, const HttpRequest& request,
                                   const Stream& stream) {
  if (request.method != "GET") {
    Send(connection, MethodNotAllowed("GET"), true);
    return 405;
  }
  if (!TakeStream()) {
    Send(connection, stream.busy, true);
    return stream.busy.status;
  }
  StreamBody body;
  const HttpResponse response = stream.handler(request, &body);
  if (response.status != 200 || !body) {
    Send(connection, response, true);
  } else if (WriteAll(connection, absl::StrCat(HeadOf(response), "\r\n"))) {
    Connection open(this, connection);
    body(open);
  }
  GiveStream();
  return response.status;
}

HttpResponse HttpServer::State::Answer(const HttpRequest& request) const {
  const auto handler = handlers.find(request.path);
  if (handler != handlers.end()) {
    if (request.method != "GET" && request.method != "HEAD") return MethodNotAllowed("GET, HEAD");
    return handler->second(request);
  }
  const Handler* longest = nullptr;
  for (const auto& [prefix, below] : prefixes) {  // ascending: a longer match comes later
    if (absl::StartsWith(request.path, prefix)) longest = &below;
  }
  if (longest != nullptr) return (*longest)(request);
  return {404, kPlainText, "not found\n"};
}

int HttpServer::State::OnRequest(mg_connection* connection, void* data) {
  auto* const state = static_cast<State*>(data);
  const mg_request_info* info = mg_get_request_info(connection);
  const HttpRequest request = RequestOf(*info);
  const auto host = request.headers.find("host");
  HttpResponse response;
  if (state->checks_host && host != request.headers.end() &&
      !IsOwnHost(host->second, state->options.host_names)) {
    response = {403, kPlainText,
                "this Host is not known here: use localhost, or start with --http-host NAME\n"};
  } else if (const auto refused = DropBody(connection, *info, request)) {
    response = *refused;
  } else if (const auto stream = state->stream_handlers.find(request.path);
             stream != state->stream_handlers.end()) {
    return state->ServeStream(connection, request, stream->second);
  } else {
    response = state->Answer(request);
  }
  Send(connection, response, request.method != "HEAD");
  return response.status;
}

// What civetweb itself refuses: malformed requests, heads that are too long.
int HttpServer::State::OnError(mg_connection* connection, int status, const char*) {
  Send(connection, {status, kPlainText, absl::StrCat(ReasonOf(status), "\n")}, true);
  return 0;
}

HttpServer::HttpServer() : state_(std::make_unique<State>()) {}
HttpServer::~HttpServer() { Stop(); }

void HttpServer::Handle(const std::string& path, Handler handler) {
  state_->handlers[path] = std::move(handler);
}

void HttpServer::HandleBelow(const std::string& prefix, Handler handler) {
  state_->prefixes[prefix] = std::move(handler);
}

void HttpServer::HandleStream(const std::string& path, StreamHandler handler, HttpResponse busy) {
  state_->stream_handlers[path] = {std::move(handler), std::move(busy)};
}

absl::Status HttpServer::Start(const HttpOptions& options) {
  state_->options = options;
  state_->checks_host = IsLoopback(options.listen);
  const std::string threads = absl::StrCat(options.threads + options.max_streams);
  // civetweb answers preflight requests by itself, and with "*" unless told otherwise: the header
  // that guards POST would then guard nothing.
  const char* settings[] = {"listening_ports",
                            options.listen.c_str(),
                            "num_threads",
                            threads.c_str(),
                            "request_timeout_ms",
                            "10000",
                            "max_request_size",
                            "16384",
                            "access_control_allow_origin",
                            "",
                            "access_control_allow_methods",
                            "",
                            "access_control_allow_headers",
                            "",
                            nullptr};
  mg_callbacks callbacks{};
  callbacks.http_error = State::OnError;
  mg_init_library(0);
  unsigned code = 0;
  char reason[256] = "";
  mg_init_data init = {&callbacks, nullptr, settings};
  mg_error_data error = {&code, reason, sizeof(reason)};
  state_->context = mg_start2(&init, &error);
  if (state_->context == nullptr) {
    mg_exit_library();
    // civetweb has no text for a system that refuses it memory or a thread.
    return absl::UnavailableError(
        absl::StrCat("cannot serve HTTP on ", options.listen, ": ",
                     *reason != '\0' ? reason : "no memory or no thread to be had",
                     "; is the port taken? choose another with --http"));
  }
  mg_server_port ports[1];
  std::memset(ports, 0, sizeof(ports));
  if (mg_get_server_ports(state_->context, 1, ports) == 1) state_->port = ports[0].port;
  mg_set_request_handler(state_->context, "**", State::OnRequest, state_.get());
  return absl::OkStatus();
}

void HttpServer::Stop() {
  if (state_->context == nullptr) return;
  {
    // Streams get the time for a last word: civetweb cuts off whoever still writes.
    std::unique_lock<std::mutex> lock(state_->mutex);
    state_->stopping = true;
    state_->changed.notify_all();
    state_->changed.wait_for(lock, std::chrono::seconds(1), [this] { return !state_->streams; });
  }
  {
    const ListenKnock knock(state_->options.listen, state_->port);
    mg_stop(state_->context);
  }
  state_->context = nullptr;
  mg_exit_library();
}

int HttpServer::port() const { return state_->port; }

int HttpServer::streams() const {
  std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->streams;
}

std::optional<std::string> QueryValue(const HttpRequest& request, const std::string& name) {
  char value[kLongestValue + 1];
  const int length =
      mg_get_var(request.query.data(), request.query.size(), name.c_str(), value, sizeof(value));
  if (length < 0) return std::nullopt;
  return std::string(value, static_cast<size_t>(length));
}

bool IsOwnHost(const std::string& host, const std::vector<std::string>& host_names) {
  std::string name = absl::AsciiStrToLower(host);
  if (name.empty() || name[0] == '[') return true;  // an IPv6 address
  name = name.substr(0, name.find(':'));
  in_addr address;
  if (inet_pton(AF_INET, name.c_str(), &address) == 1) return true;
  if (name == "localhost" || absl::EndsWith(name, ".localhost")) return true;
  return std::find(host_names.begin(), host_names.end(), name) != host_names.end();
}

HttpResponse MethodNotAllowed(const std::string& allowed) {
  return {405, kPlainText, absl::StrCat("only ", allowed, "\n"), {{"Allow", allowed}}};
}

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
