// HttpRequest, HttpResponse: requests and answers of the HTTP side, as values.
// Every answer gets the same security headers. The content security policy is strict: no inline
// script or style, nothing from elsewhere. There is no sniffing, no framing, no CORS. Nothing is
// kept in a cache, unless the answer has a Cache-Control of its own.
// Threads: any.
#ifndef STAGECOACH_SERVICES_COMMON_HTTP_HTTP_MESSAGE_H_
#define STAGECOACH_SERVICES_COMMON_HTTP_HTTP_MESSAGE_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stagecoach {

struct HttpRequest {
  std::string method, path, query;             // path: decoded; query: as it came
  std::map<std::string, std::string> headers;  // by lower-case name
  std::string body = {};                       // at most 64 KiB
  std::string peer = {};                       // key for limits (PeerKey); empty: loopback
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};  // besides the usual ones
  bool has_form = false;  // the answer is a page with a form, which may be sent to this server
};

// "%2F" as "/"; with `plus` also "+" as " ". Invalid escapes stay as they are.
std::string DecodeUrl(const std::string& text, bool plus);

// The decoded value of a field of "a=1&b=2"; nothing if absent or longer than 1 KiB.
std::optional<std::string> FormValue(const std::string& form, const std::string& name);

// The same of a query parameter.
std::optional<std::string> QueryValue(const HttpRequest& request, const std::string& name);

// The value of a header by its lower-case name; empty if absent.
std::string HeaderOf(const HttpRequest& request, const std::string& name);

// Status line and headers, up to but without the empty line; the connection ends with the answer.
std::string HeadOf(const HttpResponse& response);

// True if the client takes an answer by gzip; "gzip;q=0" refuses.
bool TakesGzip(const HttpRequest& request);

// 405 naming the allowed methods: "GET, HEAD".
HttpResponse MethodNotAllowed(const std::string& allowed);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_HTTP_HTTP_MESSAGE_H_
