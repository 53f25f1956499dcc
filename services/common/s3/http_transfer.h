// HttpTransfer: HTTP requests by libcurl, with deadlines and over kept connections.
// Ownership: owns its idle connections. Spans of a call outlive the call.
// Threads:   thread-safe; calls wait, and tick progress (base/threads/progress.h) as bytes move.
// Units:     bytes. A call ends 60 s after its last byte at the latest.
// Errors:    UNAVAILABLE: no connection, a broken one, or nothing moved; CANCELLED after Shutdown;
//            FAILED_PRECONDITION: the server's certificate is not accepted; DATA_LOSS: an answer is
//            larger than it may be. Every HTTP status is an answer, no error. No message has the
//            URL's query, as a presigned one opens an object.
#ifndef STAGECOACH_SERVICES_COMMON_S3_HTTP_TRANSFER_H_
#define STAGECOACH_SERVICES_COMMON_S3_HTTP_TRANSFER_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/s3/sigv4.h"

namespace stagecoach {

struct HttpCall {
  std::string method;  // GET, HEAD, PUT, POST or DELETE
  std::string url;     // encoded
  NamedTexts headers = {};
  std::span<const std::byte> body = {};  // of PUT and POST
  // Takes the body of an answer of status 200 or 206, as far as it goes. Empty: the answer has it.
  std::span<std::byte> target = {};
  double connect_seconds = 10;
  double silent_seconds = 60;
};

struct HttpAnswer {
  int status = 0;
  std::map<std::string, std::string> headers;  // by lower-case name
  std::string body;                            // at most 16 MiB
  size_t received = 0;                         // bytes in the call's target

  bool ok() const { return status >= 200 && status < 300; }
  std::string Header(const std::string& name) const;  // empty if absent
};

// Virtual functions: a simulation moves bytes and waits on its own time.
class HttpTransfer {
 public:
  HttpTransfer();
  virtual ~HttpTransfer();
  // With an error `received` tells how much reached the target all the same.
  virtual absl::StatusOr<HttpAnswer> Do(const HttpCall& call, size_t* received = nullptr);
  void Shutdown();                          // calls under way end within a second
  virtual bool WaitClosed(double seconds);  // true: after Shutdown, at once

 private:
  struct Connection;
  std::unique_ptr<Connection> Take();
  void Give(std::unique_ptr<Connection> connection);

  const std::string authorities_;    // file of certificates; empty: the system's
  std::atomic<bool> closed_{false};  // set under the mutex
  std::condition_variable changed_;
  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<Connection>> idle_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_S3_HTTP_TRANSFER_H_
