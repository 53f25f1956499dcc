// FakeS3: an S3 server in this process that keeps one bucket in memory and fails on command. What it
// knows of S3: objects, conditional puts and gets, ranges, listings, uploads in parts. Without
// sockets it has no threads either, and serves Ask.
// Threads: its own, one a connection; the calls here from any.
#ifndef STAGECOACH_SERVICES_COMMON_S3_FAKE_S3_TESTING_H_
#define STAGECOACH_SERVICES_COMMON_S3_FAKE_S3_TESTING_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/errors/check.h"
#include "services/common/http/http_message.h"
#include "services/common/s3/s3_client.h"
#include "services/common/s3/s3_xml.h"

namespace stagecoach {

class FakeS3 {
 public:
  enum class Fault {
    kNone,
    kError,      // 500, nothing done
    kBusy,       // 503, nothing done
    kConflict,   // 409, nothing done
    kCutBefore,  // the connection ends, nothing done
    kCutAfter,   // done, and the connection ends without an answer
    kCutMiddle,  // done, and the connection ends in the middle of the answer
  };
  struct Request {
    std::string method, key, body;
    std::map<std::string, std::string> query, headers;
    bool Has(const std::string& field) const { return query.contains(field); }
  };

  struct Answer {
    int status = 200;
    std::string body = {};
    std::string headers = {};  // lines, each with its end
  };
  enum class Sockets { kListens, kNone };

  // `fault` is asked for every request that comes over a socket; any thread.
  explicit FakeS3(std::function<Fault(const Request&)> fault = nullptr,
                  Sockets sockets = Sockets::kListens)
      : fault_(std::move(fault)),
        listener_(sockets == Sockets::kNone ? -1 : socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (sockets == Sockets::kNone) return;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    CHECK(listen(listener_, 64) == 0);
    socklen_t size = sizeof(address);
    CHECK(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { Accept(); });
  }
  ~FakeS3() {
    if (listener_ < 0) return;
    shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    {
      std::lock_guard<std::mutex> lock(mutex_);
      for (const int fd : open_) shutdown(fd, SHUT_RDWR);
    }
    for (std::thread& connection : connections_) connection.join();
    close(listener_);
  }
  FakeS3(const FakeS3&) = delete;
  FakeS3& operator=(const FakeS3&) = delete;

  static constexpr char kBucket[] = "bucket", kAccessKey[] = "fake-key";
  std::string endpoint() const { return absl::StrCat("http://127.0.0.1:", port_); }
  std::map<std::string, std::string> objects() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return objects_;
  }
  void Set(const std::string& key, const std::string& content) {
    std::lock_guard<std::mutex> lock(mutex_);
    objects_[key] = content;
    modified_[key] = Now();
  }
  // Of what changes from now on; as of now, the system's.
  void SetTime(absl::Time time) {
    std::lock_guard<std::mutex> lock(mutex_);
    time_ = time;
  }
  void Erase(const std::string& key) {
    std::lock_guard<std::mutex> lock(mutex_);
    objects_.erase(key);
  }
  size_t uploads() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return uploads_.size();
  }
  int requests() const { return requests_; }
  // head: "PUT /bucket/key HTTP/1.1", and lines of headers, with "\r\n" between them.
  Answer Ask(const std::string& head, std::string body) {
    Request request = Parse(head);
    request.body = std::move(body);
    ++requests_;
    return Do(request);
  }
  void IgnoreConditions() { ignores_conditions_ = true; }
  void SetPageSize(size_t size) { page_ = size; }

 private:
  struct Upload {
    std::string key, begun;
    std::map<int, std::string> parts;
  };

  void Accept() {
    while (true) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      std::lock_guard<std::mutex> lock(mutex_);
      open_.insert(fd);
      connections_.emplace_back([this, fd] {
        Serve(fd);
        std::lock_guard<std::mutex> inner(mutex_);
        open_.erase(fd);
        close(fd);
      });
    }
  }

  static bool Receive(int fd, std::string* text) {
    char buffer[65536];
    const ssize_t got = read(fd, buffer, sizeof(buffer));
    if (got > 0) text->append(buffer, static_cast<size_t>(got));
    return got > 0;
  }
  static void Send(int fd, std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      text.remove_prefix(static_cast<size_t>(sent));
    }
  }

  static Request Parse(const std::string& head) {
    const std::vector<std::string> lines = absl::StrSplit(head, "\r\n");
    const std::vector<std::string> first = absl::StrSplit(lines[0], ' ');
    const std::vector<std::string> target = absl::StrSplit(first[1], absl::MaxSplits('?', 1));
    Request request{.method = first[0]};
    const std::string path = DecodeUrl(target[0], false), front = absl::StrCat("/", kBucket);
    request.key = path == front ? "" : path.substr(std::min(path.size(), front.size() + 1));
    if (!absl::StartsWith(path, front)) request.key = "//";  // another bucket
    if (target.size() > 1) {
      for (const auto& field : absl::StrSplit(target[1], '&', absl::SkipEmpty())) {
        const std::vector<std::string> pair = absl::StrSplit(field, absl::MaxSplits('=', 1));
        request.query[DecodeUrl(pair[0], false)] = pair.size() > 1 ? DecodeUrl(pair[1], false) : "";
      }
    }
    for (size_t line = 1; line < lines.size(); ++line) {
      const std::vector<std::string> pair = absl::StrSplit(lines[line], absl::MaxSplits(": ", 1));
      if (pair.size() > 1) request.headers[absl::AsciiStrToLower(pair[0])] = pair[1];
    }
    return request;
  }

  void Serve(int fd) {
    std::string buffer;
    while (true) {
      size_t end;
      while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
        if (!Receive(fd, &buffer)) return;
      }
      Request request = Parse(buffer.substr(0, end));
      size_t length = 0;
      const std::string given = request.headers["content-length"];
      CHECK(given.empty() || absl::SimpleAtoi(given, &length));
      while (buffer.size() < end + 4 + length) {
        if (!Receive(fd, &buffer)) return;
      }
      request.body = buffer.substr(end + 4, length);
      buffer.erase(0, end + 4 + length);
      ++requests_;
      if (!Respond(fd, request)) {
        shutdown(fd, SHUT_RDWR);
        return;
      }
    }
  }

  bool Respond(int fd, const Request& request) {
    const Fault fault = fault_ ? fault_(request) : Fault::kNone;
    if (fault == Fault::kCutBefore) return false;
    Answer answer;
    switch (fault) {
      case Fault::kError:
        answer = Error(500, "InternalError");
        break;
      case Fault::kBusy:
        answer = Error(503, "SlowDown");
        break;
      case Fault::kConflict:
        answer = Error(409, "ConditionalRequestConflict");
        break;
      default:
        answer = Do(request);
    }
    if (fault == Fault::kCutAfter) return false;
    const bool head = request.method == "HEAD";
    std::string text =
        absl::StrCat("HTTP/1.1 ", answer.status, " Said\r\nContent-Length: ", answer.body.size(),
                     "\r\n", answer.headers, "\r\n", head ? "" : answer.body);
    if (fault == Fault::kCutMiddle)
      text.resize(text.size() - (head ? 2 : answer.body.size() / 2 + 1));
    Send(fd, text);
    return fault != Fault::kCutMiddle;
  }

  static Answer Error(int status, const std::string& code) {
    return {status,
            absl::StrCat("<Error><Code>", code, "</Code><Message>as told</Message></Error>")};
  }
  static std::string EtagOf(const std::string& content) {
    return absl::StrCat("\"", Md5Hex(std::as_bytes(std::span(content))), "\"");
  }

  Answer Do(const Request& request) {
    const auto authorization = request.headers.find("authorization");
    const auto credential = request.query.find("X-Amz-Credential");
    const std::string who = authorization != request.headers.end() ? authorization->second
                            : credential != request.query.end()    ? credential->second
                                                                   : "";
    if (!absl::StrContains(who, kAccessKey)) return Error(403, "InvalidAccessKeyId");
    if (request.key == "//") return Error(404, "NoSuchBucket");
    std::lock_guard<std::mutex> lock(mutex_);
    if (request.Has("uploads") || request.Has("uploadId")) return DoUpload(request);
    if (request.method == "PUT") return Put(request);
    if (request.method == "DELETE") {
      objects_.erase(request.key);
      return {204};
    }
    if (request.key.empty()) return List(request);
    return Get(request);
  }

  Answer Put(const Request& request) {
    const bool conditional = request.headers.contains("if-none-match") && !ignores_conditions_;
    if (conditional && objects_.contains(request.key)) return Error(412, "PreconditionFailed");
    objects_[request.key] = request.body;
    modified_[request.key] = Now();
    return {200, "", absl::StrCat("ETag: ", EtagOf(request.body), "\r\n")};
  }

  Answer Get(const Request& request) {
    const auto found = objects_.find(request.key);
    if (found == objects_.end()) return Error(404, "NoSuchKey");
    const std::string etag = EtagOf(found->second), header = absl::StrCat("ETag: ", etag, "\r\n");
    const auto wanted = request.headers.find("if-match");
    if (wanted != request.headers.end() && wanted->second != etag && !ignores_conditions_) {
      return Error(412, "PreconditionFailed");
    }
    const auto range = request.headers.find("range");
    if (range == request.headers.end()) return {200, found->second, header};
    const std::vector<std::string> ends = absl::StrSplit(range->second.substr(6), '-');
    size_t first = 0, last = 0;
    CHECK(absl::SimpleAtoi(ends[0], &first) && absl::SimpleAtoi(ends[1], &last));
    if (first >= found->second.size()) return Error(416, "InvalidRange");
    return {206, found->second.substr(first, last - first + 1), header};
  }

  Answer List(const Request& request) {
    const std::string prefix = request.query.at("prefix");
    const auto after = request.query.find("continuation-token");
    const bool flat = request.Has("delimiter");
    std::string body, last;
    std::set<std::string> prefixes;
    size_t count = 0;
    bool more = false;
    for (const auto& [key, content] : objects_) {
      if (!key.starts_with(prefix)) continue;
      const size_t slash = flat ? key.find('/', prefix.size()) : std::string::npos;
      const std::string name = slash == std::string::npos ? key : key.substr(0, slash + 1);
      if (after != request.query.end() && name <= after->second) continue;
      if (prefixes.contains(name)) continue;
      if (count == page_) {
        more = true;
        break;
      }
      ++count;
      last = name;
      if (slash != std::string::npos) {
        prefixes.insert(name);
        absl::StrAppend(&body, "<CommonPrefixes><Prefix>", name, "</Prefix></CommonPrefixes>");
      } else {
        absl::StrAppend(&body, "<Contents><Key>", key, "</Key><ETag>", XmlEscaped(EtagOf(content)),
                        "</ETag><LastModified>", modified_[key], "</LastModified><Size>",
                        content.size(), "</Size></Contents>");
      }
    }
    if (more) {
      absl::StrAppend(&body, "<IsTruncated>true</IsTruncated><NextContinuationToken>", last,
                      "</NextContinuationToken>");
    }
    return {200, absl::StrCat("<ListBucketResult>", body, "</ListBucketResult>")};
  }

  std::string Now() const {
    return absl::FormatTime(absl::RFC3339_full, time_.value_or(absl::Now()), absl::UTCTimeZone());
  }

  Answer ListUploads() const {
    std::string body;
    for (const auto& [id, upload] : uploads_) {
      absl::StrAppend(&body, "<Upload><Key>", upload.key, "</Key><UploadId>", id,
                      "</UploadId><Initiated>", upload.begun, "</Initiated></Upload>");
    }
    return {200, body};
  }

  Answer ListParts(const Request& request, const Upload& upload) const {
    const auto marker = request.query.find("part-number-marker");
    int after = 0;
    CHECK(marker == request.query.end() || absl::SimpleAtoi(marker->second, &after));
    std::string body;
    size_t count = 0;
    for (const auto& [number, content] : upload.parts) {
      if (number <= after) continue;
      if (count++ == page_) {
        absl::StrAppend(&body, "<IsTruncated>true</IsTruncated>");
        break;
      }
      absl::StrAppend(&body, "<Part><PartNumber>", number, "</PartNumber><ETag>",
                      XmlEscaped(EtagOf(content)), "</ETag><Size>", content.size(),
                      "</Size></Part>");
    }
    return {200, body};
  }

  Answer DoUpload(const Request& request) {
    if (request.method == "GET" && request.Has("uploads")) return ListUploads();
    if (request.Has("uploads")) {
      const std::string id = absl::StrCat("upload ", ++last_upload_);
      uploads_[id].key = request.key;
      uploads_[id].begun = Now();
      return {200, absl::StrCat("<UploadId>", id, "</UploadId>")};
    }
    const auto found = uploads_.find(request.query.at("uploadId"));
    if (found == uploads_.end() || found->second.key != request.key) {
      return Error(404, "NoSuchUpload");
    }
    if (request.method == "GET") return ListParts(request, found->second);
    if (request.method == "PUT") {
      int part = 0;
      CHECK(absl::SimpleAtoi(request.query.at("partNumber"), &part));
      found->second.parts[part] = request.body;
      return {200, "", absl::StrCat("ETag: ", EtagOf(request.body), "\r\n")};
    }
    if (request.method == "POST") {
      std::string content;
      const std::vector<std::string> etags = XmlElements(request.body, "Part");
      for (size_t part = 0; part < etags.size(); ++part) {
        const std::string& bytes = found->second.parts[static_cast<int>(part) + 1];
        if (XmlText(etags[part], "ETag") != EtagOf(bytes)) return Error(400, "InvalidPart");
        content += bytes;
      }
      objects_[request.key] = content;
      modified_[request.key] = found->second.begun;  // as AWS tells it
    }
    uploads_.erase(found);
    return {200, "<CompleteMultipartUploadResult/>"};
  }

  const std::function<Fault(const Request&)> fault_;
  const int listener_;
  int port_ = 0;
  std::atomic<int> requests_{0};
  std::atomic<bool> ignores_conditions_{false};
  std::atomic<size_t> page_{1000};
  mutable std::mutex mutex_;  // guards what follows
  std::optional<absl::Time> time_;
  std::map<std::string, std::string> objects_, modified_;  // by key
  std::map<std::string, Upload> uploads_;
  int last_upload_ = 0;
  std::set<int> open_;
  std::list<std::thread> connections_;
  std::thread acceptor_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_S3_FAKE_S3_TESTING_H_
