#include "services/common/http/http_server.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "services/common/http/gzip_answer.h"
#include "services/common/http/http_gate.h"
#include "services/common/http/worker_pool.h"
#include "services/common/process/server_flags.h"

namespace stagecoach {
namespace {

constexpr char kPlainText[] = "text/plain; charset=utf-8";

HttpResponse TooMany() {
  return {503, kPlainText, "too many requests wait here; try again\n", {{"Retry-After", "1"}}};
}

}  // namespace

struct HttpServer::State {
  struct Stream {
    StreamHandler handler;
    HttpResponse busy;
  };
  class OpenStream;

  std::map<std::string, Handler> handlers, prefixes;  // fixed once started, as the next two
  std::map<std::string, Stream> stream_handlers;
  HttpOptions options;
  std::unique_ptr<HttpGate> gate;
  std::unique_ptr<HttpListener> listener;
  std::unique_ptr<WorkerPool> request_threads, stream_threads;

  std::mutex mutex;  // guards the next two
  int streams = 0;
  bool stopping = false;
  std::condition_variable changed;

  void Serve(const std::shared_ptr<HttpExchange>& exchange);
  HttpResponse Answer(const HttpRequest& request) const;
  void ServeStream(const std::shared_ptr<HttpExchange>& exchange, const Stream& stream);
  bool TakeStream();
  void GiveStream();
};

// Ends with the server: writes of a stopping server fail after the last word.
class HttpServer::State::OpenStream final : public HttpStream {
 public:
  OpenStream(State* state, HttpExchange* exchange) : state_(state), exchange_(exchange) {}
  bool Write(const std::string& text) override { return exchange_->Write(text); }
  bool Wait(std::chrono::nanoseconds time) override {
    std::unique_lock<std::mutex> lock(state_->mutex);
    return !state_->changed.wait_for(lock, time, [this] { return state_->stopping; });
  }

 private:
  State* const state_;
  HttpExchange* const exchange_;
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

void HttpServer::State::ServeStream(const std::shared_ptr<HttpExchange>& exchange,
                                    const Stream& stream) {
  if (exchange->request().method != "GET") return exchange->Answer(MethodNotAllowed("GET"));
  if (!TakeStream()) return exchange->Answer(stream.busy);
  StreamBody body;
  const HttpResponse response = stream.handler(exchange->request(), &body);
  if (response.status != 200 || !body) {
    exchange->Answer(response);
    return GiveStream();
  }
  const bool started = stream_threads->Submit([this, exchange, response, body] {
    OpenStream open(this, exchange.get());
    if (exchange->Begin(response)) body(open);
    exchange->End();
    GiveStream();
  });
  if (started) return;
  exchange->Answer(stream.busy);
  GiveStream();
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

void HttpServer::State::Serve(const std::shared_ptr<HttpExchange>& exchange) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (stopping) return exchange->Answer(TooMany());
  }
  const HttpRequest& request = exchange->request();
  if (const auto refused = gate->Check(request)) return exchange->Answer(*refused);
  const auto stream = stream_handlers.find(request.path);
  if (stream != stream_handlers.end()) return ServeStream(exchange, stream->second);
  HttpResponse response = Answer(request);
  CompressAnswer(request, &response);
  exchange->Answer(response);
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
  State* const state = state_.get();
  state->options = options;
  ASSIGN_OR_RETURN(state->gate, HttpGate::Make({.checks_host = IsLoopback(options.listen),
                                                .host_names = options.host_names,
                                                .token_file = options.token_file,
                                                .guesses = options.guesses}));
  const auto streams = static_cast<size_t>(options.max_streams);
  state->request_threads = std::make_unique<WorkerPool>(
      "http", static_cast<size_t>(options.threads), static_cast<size_t>(kMostWaiting));
  // One that ends may still be on its way out when the next one has its place.
  state->stream_threads = std::make_unique<WorkerPool>("http-stream", streams, streams);
  auto listener = std::make_unique<HttpListener>(
      options.limits, [state](std::shared_ptr<HttpExchange> exchange) {
        if (state->request_threads->Submit([state, exchange] { state->Serve(exchange); })) return;
        exchange->Answer(TooMany());
      });
  const absl::Status status = listener->Start(options.listen);
  if (!status.ok()) {
    return absl::UnavailableError(
        absl::StrCat(status.message(), "; is the port taken? choose another with ", options.flag));
  }
  state->listener = std::move(listener);
  return absl::OkStatus();
}

void HttpServer::Stop() {
  if (state_->listener == nullptr) return;
  {
    // Streams get the time for a last word; then whoever still writes is cut off.
    std::unique_lock<std::mutex> lock(state_->mutex);
    state_->stopping = true;
    state_->changed.notify_all();
    state_->changed.wait_for(lock, std::chrono::seconds(1), [this] { return !state_->streams; });
  }
  state_->request_threads->Stop();
  state_->listener->CloseAll();
  state_->stream_threads->Stop();
  state_->listener->Stop();
  state_->listener.reset();
}

int HttpServer::port() const { return state_->listener == nullptr ? 0 : state_->listener->port(); }

int HttpServer::streams() const {
  std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->streams;
}

int HttpServer::connections() const {
  return state_->listener == nullptr ? 0 : state_->listener->connections();
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
