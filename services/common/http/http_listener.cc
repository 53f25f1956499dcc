#include "services/common/http/http_listener.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <future>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/threads/thread.h"
#include "services/common/http/answer_budget.h"

namespace stagecoach {
namespace {

namespace asio = boost::asio;
namespace beast_http = boost::beast::http;
using asio::ip::tcp;
using Error = boost::system::error_code;
using SteadyClock = std::chrono::steady_clock;

constexpr char kPlainText[] = "text/plain; charset=utf-8";
constexpr uint32_t kMostHeadBytes = 16 << 10;
constexpr uint64_t kMostBodyBytes = 64 << 10;
constexpr int64_t kSlowestBytesPerSecond = 16 << 10;
// How long a closing connection hears what its peer still sends: a socket that is closed with bytes
// unread takes back the answer.
constexpr std::chrono::seconds kLinger(2);
constexpr std::chrono::milliseconds kNoDescriptorPause(100);

// Whose connections are counted together.
std::string PeerOf(const tcp::endpoint& endpoint) {
  const asio::ip::address address = endpoint.address();
  if (address.is_v4()) return address.to_string();
  const asio::ip::address_v6 v6 = address.to_v6();
  if (v6.is_v4_mapped()) {
    return asio::ip::make_address_v4(asio::ip::v4_mapped, v6).to_string();
  }
  const auto bytes = v6.to_bytes();
  return std::string(bytes.begin(), bytes.begin() + 8);
}

int CapOf(const HttpLimits& limits) {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return limits.connections;
  return MostConnections(limits.files, limits.connections, files.rlim_cur);
}

// localhost has two addresses and one socket serves one of them. Who asks for the name tries the
// other after ::1; who asks for 127.0.0.1, as forwarded ports do, tries nothing else.
tcp::endpoint EndpointFor(const std::string& host, const tcp::resolver::results_type& found) {
  for (const auto& entry : found) {
    if (host == "localhost" && entry.endpoint().protocol() == tcp::v4()) return entry.endpoint();
  }
  return *found.begin();
}

// False: it is no request for this server.
bool ToRequest(const beast_http::request<beast_http::string_body>& message, HttpRequest* request) {
  request->method = std::string(message.method_string());
  const std::string target(message.target());
  if (target.empty() || target[0] != '/' || message.count(beast_http::field::host) > 1)
    return false;
  const size_t question = target.find('?');
  request->path = DecodeUrl(target.substr(0, question), false);
  if (question != std::string::npos) request->query = target.substr(question + 1);
  for (const auto& field : message) {
    request->headers[absl::AsciiStrToLower(std::string(field.name_string()))] =
        std::string(field.value());
  }
  request->body = message.body();
  return true;
}

}  // namespace

// All but what is atomic belongs to the one thread once that runs.
class HttpListener::Core {
 public:
  Core(const HttpLimits& given, OnRequest request_hook)
      : limits(given),
        on_request(std::move(request_hook)),
        acceptor(io),
        pause(io),
        answers(given.answer_bytes) {}

  void Accept();
  void Admit(tcp::socket socket);
  bool MakeRoom(const std::string& peer);
  void CloseAll();

  const HttpLimits limits;
  const OnRequest on_request;
  asio::io_context io{1};
  tcp::acceptor acceptor;
  asio::steady_timer pause;
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work;
  int port = 0;
  int most_connections = 0;
  std::set<std::shared_ptr<Connection>> open;
  std::list<Connection*> spare;  // that are owed nothing: still asking, or answered; oldest first
  std::map<std::string, int> of_peer;
  std::array<char, 4096> unread;  // what comes after a request; nobody looks at it
  std::atomic<int> connections{0};
  AnswerBudget answers;  // thread-safe too
  Thread thread;
};

class HttpListener::Connection final : public HttpExchange,
                                       public std::enable_shared_from_this<Connection> {
 public:
  Connection(Core* core, tcp::socket socket, std::string peer)
      : core_(core),
        socket_(std::move(socket)),
        timer_(core->io),
        peer_(std::move(peer)),
        buffer_(kMostHeadBytes + 4096) {
    parser_.emplace();
    parser_->header_limit(kMostHeadBytes);
    parser_->body_limit(kMostBodyBytes);
  }

  const HttpRequest& request() const override { return request_; }
  void Answer(const HttpResponse& response) override;
  bool Begin(const HttpResponse& head) override {
    return WriteAndWait(absl::StrCat(HeadOf(head), "\r\n"));
  }
  bool Write(const std::string& text) override { return WriteAndWait(text); }
  void End() override {
    asio::post(core_->io, [self = shared_from_this()] { self->Linger(); });
  }

  // The rest on the listener's thread.
  void Read();
  void Close();
  const std::string& peer() const { return peer_; }

 private:
  using Taken = std::function<void(bool)>;

  void OnHead(const Error& error);
  void OnBody(const Error& error);
  void Refuse(int status, const char* text);
  void MarkSpare();
  void UnmarkSpare();
  bool WriteAndWait(std::string text);
  void StartWriting(std::string text, Taken taken);
  void WriteOn();
  void EndWriting(bool taken);
  void Linger();
  void Drop();
  void CloseAfter(std::chrono::nanoseconds time);

  Core* const core_;
  tcp::socket socket_;
  asio::steady_timer timer_;
  const std::string peer_;
  boost::beast::flat_buffer buffer_;
  std::optional<beast_http::request_parser<beast_http::string_body>> parser_;
  std::optional<std::list<Connection*>::iterator> spare_;
  HttpRequest request_;
  std::string text_;  // being written, from written_ on
  size_t written_ = 0;
  SteadyClock::time_point write_end_;
  Taken taken_;
  bool closed_ = false;
};

void HttpListener::Connection::CloseAfter(std::chrono::nanoseconds time) {
  timer_.expires_after(std::chrono::duration_cast<SteadyClock::duration>(time));
  timer_.async_wait([self = shared_from_this()](const Error& error) {
    // It may have been set anew after it rang.
    if (!error && self->timer_.expiry() <= SteadyClock::now()) self->Close();
  });
}

void HttpListener::Connection::Read() {
  MarkSpare();
  CloseAfter(core_->limits.request);
  beast_http::async_read_header(
      socket_, buffer_, *parser_,
      [self = shared_from_this()](const Error& error, size_t) { self->OnHead(error); });
}

void HttpListener::Connection::MarkSpare() {
  spare_ = core_->spare.insert(core_->spare.end(), this);
}

void HttpListener::Connection::UnmarkSpare() {
  if (spare_) core_->spare.erase(*spare_);
  spare_.reset();
}

void HttpListener::Connection::OnHead(const Error& error) {
  if (closed_) return;
  const bool of_parser = error.category() == beast_http::make_error_code({}).category();
  if (error && (!of_parser || error == beast_http::error::end_of_stream))
    return Close();  // it left
  if (error == beast_http::error::body_limit) {
    return Refuse(413, "a body has at most 64 KiB here\n");
  }
  if (error) return Refuse(400, "this is no HTTP request, or its head is longer than 16 KiB\n");
  if (parser_->chunked()) return Refuse(411, "state the length of the body\n");
  if (parser_->is_done()) return OnBody(error);
  beast_http::async_read(
      socket_, buffer_, *parser_,
      [self = shared_from_this()](const Error& body_error, size_t) { self->OnBody(body_error); });
}

void HttpListener::Connection::OnBody(const Error& error) {
  if (closed_) return;
  if (error) return Close();
  if (!ToRequest(parser_->get(), &request_)) {
    return Refuse(400, "want a path, and one Host at most\n");
  }
  request_.peer = peer_;
  UnmarkSpare();
  timer_.cancel();
  parser_.reset();
  core_->on_request(shared_from_this());
}

// Without asking anybody.
void HttpListener::Connection::Refuse(int status, const char* text) {
  UnmarkSpare();
  Answer({status, kPlainText, text});
}

void HttpListener::Connection::Answer(const HttpResponse& response) {
  std::string text = HeadOf(response);
  // Not Modified would have to name the length of what it spares.
  if (response.status != 304) {
    absl::StrAppend(&text, "Content-Length: ", response.body.size(), "\r\n");
  }
  text += "\r\n";
  const bool has_body = request_.method != "HEAD";
  int64_t bytes = static_cast<int64_t>(text.size() + (has_body ? response.body.size() : 0));
  if (core_->answers.Take(peer_, bytes)) {
    if (has_body) text += response.body;
  } else {
    text =
        absl::StrCat(HeadOf({503, kPlainText, ""}), "Retry-After: 10\r\nContent-Length: 0\r\n\r\n");
    bytes = static_cast<int64_t>(text.size());
    core_->answers.Take(peer_, bytes);  // small: it is never refused
  }
  asio::post(core_->io, [self = shared_from_this(), text = std::move(text), bytes]() mutable {
    self->StartWriting(std::move(text), [self = self.get(), bytes](bool taken) {
      self->core_->answers.Give(self->peer_, bytes);
      taken ? self->Linger() : self->Close();
    });
  });
}

bool HttpListener::Connection::WriteAndWait(std::string text) {
  const auto result = std::make_shared<std::promise<bool>>();
  asio::post(core_->io, [self = shared_from_this(), text = std::move(text), result]() mutable {
    self->StartWriting(std::move(text), [result](bool taken) { result->set_value(taken); });
  });
  return result->get_future().get();
}

void HttpListener::Connection::StartWriting(std::string text, Taken taken) {
  text_ = std::move(text);
  written_ = 0;
  taken_ = std::move(taken);
  write_end_ = SteadyClock::now() + core_->limits.reader +
               std::chrono::seconds(static_cast<int64_t>(text_.size()) / kSlowestBytesPerSecond);
  if (closed_) return EndWriting(false);
  if (text_.empty()) return EndWriting(true);
  WriteOn();
}

void HttpListener::Connection::WriteOn() {
  CloseAfter(
      std::min<std::chrono::nanoseconds>(core_->limits.reader, write_end_ - SteadyClock::now()));
  socket_.async_write_some(asio::buffer(text_) + written_,
                           [self = shared_from_this()](const Error& error, size_t written) {
                             self->written_ += written;
                             if (error || self->closed_) {
                               self->EndWriting(false);
                             } else if (self->written_ == self->text_.size()) {
                               self->timer_.cancel();
                               self->EndWriting(true);
                             } else {
                               self->WriteOn();
                             }
                           });
}

void HttpListener::Connection::EndWriting(bool taken) {
  std::string().swap(text_);
  const Taken then = std::exchange(taken_, nullptr);
  if (!taken) Close();
  then(taken);
}

void HttpListener::Connection::Linger() {
  if (closed_) return;
  Error ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  MarkSpare();
  CloseAfter(kLinger);
  Drop();
}

void HttpListener::Connection::Drop() {
  socket_.async_read_some(asio::buffer(core_->unread),
                          [self = shared_from_this()](const Error& error, size_t) {
                            error || self->closed_ ? self->Close() : self->Drop();
                          });
}

void HttpListener::Connection::Close() {
  if (closed_) return;
  closed_ = true;
  UnmarkSpare();
  timer_.cancel();
  Error ignored;
  socket_.close(ignored);
  const auto of_peer = core_->of_peer.find(peer_);
  if (--of_peer->second == 0) core_->of_peer.erase(of_peer);
  --core_->connections;
  core_->open.erase(shared_from_this());
}

void HttpListener::Core::Accept() {
  acceptor.async_accept([this](const Error& error, tcp::socket socket) {
    if (!acceptor.is_open()) return;
    if (!error) {
      Admit(std::move(socket));
      return Accept();
    }
    if (error == asio::error::connection_aborted) return Accept();
    // No descriptor or no memory is to be had: later, instead of in a circle.
    pause.expires_after(kNoDescriptorPause);
    pause.async_wait([this](const Error& ended) {
      if (!ended) Accept();
    });
  });
}

void HttpListener::Core::Admit(tcp::socket socket) {
  Error error;
  const tcp::endpoint endpoint = socket.remote_endpoint(error);
  if (error) return;  // gone already
  const std::string peer = PeerOf(endpoint);
  if (!MakeRoom(peer)) return;
  fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
  socket.set_option(tcp::no_delay(true), error);
  const auto connection = std::make_shared<Connection>(this, std::move(socket), peer);
  open.insert(connection);
  ++of_peer[peer];
  ++connections;
  connection->Read();
}

bool HttpListener::Core::MakeRoom(const std::string& peer) {
  const auto found = of_peer.find(peer);
  const bool peer_full = found != of_peer.end() && found->second >= limits.per_peer;
  if (!peer_full && connections < most_connections) return true;
  const auto oldest = std::find_if(spare.begin(), spare.end(), [&](const Connection* other) {
    return !peer_full || other->peer() == peer;
  });
  if (oldest == spare.end()) return false;
  (*oldest)->Close();
  return true;
}

void HttpListener::Core::CloseAll() {
  Error ignored;
  acceptor.close(ignored);
  pause.cancel();
  const std::set<std::shared_ptr<Connection>> all = open;  // Close takes itself out
  for (const auto& connection : all) connection->Close();
}

HttpListener::HttpListener(const HttpLimits& limits, OnRequest on_request)
    : core_(std::make_unique<Core>(limits, std::move(on_request))) {}

HttpListener::~HttpListener() { Stop(); }

absl::Status HttpListener::Start(const std::string& listen) {
  Core& core = *core_;
  core.most_connections = CapOf(core.limits);
  const size_t colon = listen.rfind(':');
  std::string host = listen.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  Error error;
  tcp::resolver resolver(core.io);
  const auto found =
      resolver.resolve(host, colon == std::string::npos ? "" : listen.substr(colon + 1),
                       tcp::resolver::passive, error);
  if (!error) {
    const tcp::endpoint endpoint = EndpointFor(host, found);
    core.acceptor.open(endpoint.protocol(), error);
    if (!error) fcntl(core.acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
    if (!error) core.acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) core.acceptor.bind(endpoint, error);
    if (!error) core.acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (!error) core.port = core.acceptor.local_endpoint(error).port();
  }
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("cannot serve HTTP on ", listen, ": ", error.message()));
  }
  core.work.emplace(core.io.get_executor());
  core.Accept();
  core.thread = Thread("http-io", [&core] { core.io.run(); });
  return absl::OkStatus();
}

void HttpListener::CloseAll() {
  if (!core_->thread.joinable()) return;
  asio::post(core_->io, [core = core_.get()] { core->CloseAll(); });
}

void HttpListener::Stop() {
  if (!core_->thread.joinable()) return;
  CloseAll();
  core_->work.reset();
  core_->thread.Join();
}

int HttpListener::port() const { return core_->port; }
int HttpListener::connections() const { return core_->connections; }

}  // namespace stagecoach
