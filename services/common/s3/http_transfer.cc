#include "services/common/s3/http_transfer.h"

#include <curl/curl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/errors/check.h"
#include "base/threads/progress.h"

namespace stagecoach {
namespace {

constexpr size_t kMostBody = size_t{16} << 20;
constexpr size_t kMostHeaders = 200;
constexpr size_t kMostIdle = 16;

// One call with its answer, for libcurl's callbacks.
struct Exchange {
  const HttpCall& call;
  const std::atomic<bool>& closed;
  HttpAnswer answer;
  size_t sent = 0;
  bool too_large = false;
  curl_off_t moved = 0;
  CURL* handle = nullptr;

  long Status() const {
    long status = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    return status;
  }
};

size_t OnBody(char* data, size_t, size_t bytes, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  const long status = exchange.Status();
  HttpAnswer& answer = exchange.answer;
  if (!exchange.call.target.empty() && (status == 200 || status == 206)) {
    const size_t room = exchange.call.target.size() - answer.received;
    if (bytes > room) {
      exchange.too_large = true;
      return 0;
    }
    std::memcpy(exchange.call.target.data() + answer.received, data, bytes);
    answer.received += bytes;
    return bytes;
  }
  if (answer.body.size() + bytes > kMostBody) {
    exchange.too_large = true;
    return 0;
  }
  answer.body.append(data, bytes);
  return bytes;
}

size_t OnHeader(char* data, size_t, size_t bytes, void* user) {
  HttpAnswer& answer = static_cast<Exchange*>(user)->answer;
  const absl::string_view line(data, bytes);
  if (line.substr(0, 5) == "HTTP/") answer.headers.clear();  // of an interim answer
  const size_t colon = line.find(':');
  if (colon != absl::string_view::npos && answer.headers.size() < kMostHeaders) {
    answer.headers[absl::AsciiStrToLower(line.substr(0, colon))] =
        std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  }
  return bytes;
}

size_t OnSend(char* target, size_t, size_t bytes, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  const size_t now = std::min(bytes, exchange.call.body.size() - exchange.sent);
  if (now > 0) std::memcpy(target, exchange.call.body.data() + exchange.sent, now);
  exchange.sent += now;
  return now;
}

// A kept connection that turns out to be closed: the body is sent anew.
int OnSeek(void* user, curl_off_t offset, int origin) {
  auto& exchange = *static_cast<Exchange*>(user);
  if (origin != SEEK_SET || offset < 0 || static_cast<size_t>(offset) > exchange.call.body.size()) {
    return CURL_SEEKFUNC_FAIL;
  }
  exchange.sent = static_cast<size_t>(offset);
  return CURL_SEEKFUNC_OK;
}

int OnProgress(void* user, curl_off_t, curl_off_t down, curl_off_t, curl_off_t up) {
  auto& exchange = *static_cast<Exchange*>(user);
  if (down + up != exchange.moved) TickProgress();
  exchange.moved = down + up;
  return exchange.closed ? 1 : 0;
}

// AWS's own variable, and OpenSSL's.
std::string Authorities() {
  for (const char* name : {"AWS_CA_BUNDLE", "SSL_CERT_FILE"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return "";
}

absl::StatusCode CodeOfCurl(CURLcode code) {
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return absl::StatusCode::kFailedPrecondition;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return absl::StatusCode::kInvalidArgument;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

}  // namespace

struct HttpTransfer::Connection {
  Connection() : handle(curl_easy_init()) { CHECK(handle != nullptr) << "libcurl has no handle"; }
  ~Connection() { curl_easy_cleanup(handle); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  template <typename Value>
  void Set(CURLoption option, Value value) {
    CHECK(curl_easy_setopt(handle, option, value) == CURLE_OK) << "libcurl option " << option;
  }
  void SetLimits(const HttpCall& call) {
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(call.connect_seconds * 1000));
    Set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    Set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(call.silent_seconds));
    Set(CURLOPT_FOLLOWLOCATION, 0L);
    Set(CURLOPT_PROTOCOLS_STR, "http,https");
    Set(CURLOPT_PATH_AS_IS, 1L);  // a part ".." would be taken out, and be signed
    Set(CURLOPT_BUFFERSIZE, 256L << 10);
    Set(CURLOPT_UPLOAD_BUFFERSIZE, 256L << 10);
  }
  void SetMethod(const HttpCall& call) {
    const auto bytes = static_cast<curl_off_t>(call.body.size());
    if (call.method == "PUT") {
      Set(CURLOPT_UPLOAD, 1L);
      Set(CURLOPT_INFILESIZE_LARGE, bytes);
    } else if (call.method == "POST") {
      Set(CURLOPT_POST, 1L);
      Set(CURLOPT_POSTFIELDSIZE_LARGE, bytes);
    } else if (call.method == "HEAD") {
      Set(CURLOPT_NOBODY, 1L);
    } else if (call.method != "GET") {
      Set(CURLOPT_CUSTOMREQUEST, call.method.c_str());
    }
  }
  void SetCallbacks(Exchange* exchange) {
    Set(CURLOPT_WRITEFUNCTION, &OnBody);
    Set(CURLOPT_WRITEDATA, exchange);
    Set(CURLOPT_HEADERFUNCTION, &OnHeader);
    Set(CURLOPT_HEADERDATA, exchange);
    Set(CURLOPT_READFUNCTION, &OnSend);
    Set(CURLOPT_READDATA, exchange);
    Set(CURLOPT_SEEKFUNCTION, &OnSeek);
    Set(CURLOPT_SEEKDATA, exchange);
    Set(CURLOPT_NOPROGRESS, 0L);
    Set(CURLOPT_XFERINFOFUNCTION, &OnProgress);
    Set(CURLOPT_XFERINFODATA, exchange);
  }

  CURL* const handle;
};

std::string HttpAnswer::Header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

HttpTransfer::HttpTransfer() : authorities_(Authorities()) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  CHECK(ready == CURLE_OK) << "libcurl: " << curl_easy_strerror(ready);
}
HttpTransfer::~HttpTransfer() = default;

void HttpTransfer::Shutdown() {
  std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

bool HttpTransfer::WaitClosed(double seconds) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                           [this] { return closed_.load(); });
}

std::unique_ptr<HttpTransfer::Connection> HttpTransfer::Take() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (idle_.empty()) return std::make_unique<Connection>();
  std::unique_ptr<Connection> connection = std::move(idle_.back());
  idle_.pop_back();
  return connection;
}

void HttpTransfer::Give(std::unique_ptr<Connection> connection) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (idle_.size() < kMostIdle) idle_.push_back(std::move(connection));
}

absl::StatusOr<HttpAnswer> HttpTransfer::Do(const HttpCall& call, size_t* received) {
  if (received != nullptr) *received = 0;
  const std::string where =
      absl::StrCat(call.method, " ", absl::string_view(call.url).substr(0, call.url.find('?')));
  std::unique_ptr<Connection> connection = Take();
  curl_easy_reset(connection->handle);  // keeps the connection
  Exchange exchange{.call = call, .closed = closed_, .answer = {}};
  exchange.handle = connection->handle;
  char why[CURL_ERROR_SIZE] = "";
  connection->Set(CURLOPT_ERRORBUFFER, why);
  connection->Set(CURLOPT_URL, call.url.c_str());
  if (!authorities_.empty()) connection->Set(CURLOPT_CAINFO, authorities_.c_str());
  connection->SetLimits(call);
  connection->SetMethod(call);
  connection->SetCallbacks(&exchange);
  // What libcurl would add by itself: a pause before a body, a type that is none.
  curl_slist* headers = curl_slist_append(nullptr, "Expect:");
  headers = curl_slist_append(headers, "Content-Type:");
  for (const auto& [name, value] : call.headers) {
    headers = curl_slist_append(headers, absl::StrCat(name, ": ", value).c_str());
  }
  connection->Set(CURLOPT_HTTPHEADER, headers);
  const CURLcode code = curl_easy_perform(connection->handle);
  exchange.answer.status = static_cast<int>(exchange.Status());
  curl_easy_setopt(connection->handle, CURLOPT_ERRORBUFFER, nullptr);
  curl_slist_free_all(headers);
  if (received != nullptr) *received = exchange.answer.received;
  if (code == CURLE_OK) {
    Give(std::move(connection));
    return std::move(exchange.answer);
  }
  if (closed_) return absl::CancelledError(absl::StrCat(where, ": this process is shutting down"));
  if (exchange.too_large) {
    return absl::DataLossError(absl::StrCat(where, ": the answer is larger than asked for"));
  }
  const absl::StatusCode status = CodeOfCurl(code);
  return absl::Status(
      status, absl::StrCat(where, ": ", *why != '\0' ? why : curl_easy_strerror(code),
                           status == absl::StatusCode::kFailedPrecondition
                               ? "; give the authority that signed the server's certificate in "
                                 "AWS_CA_BUNDLE"
                               : ""));
}

}  // namespace stagecoach
