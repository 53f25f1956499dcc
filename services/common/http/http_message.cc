#include "services/common/http/http_message.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace stagecoach {
namespace {

constexpr char kSecurityHeaders[] =
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Connection: close\r\n";
constexpr size_t kLongestValue = 1024;

const char* ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
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
    case 429:
      return "Too Many Requests";
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

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = absl::ascii_tolower(static_cast<unsigned char>(c));
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

std::string DecodeUrl(const std::string& text, bool plus) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
    const int low = high >= 0 ? HexDigit(text[i + 2]) : -1;
    if (low >= 0) {
      decoded += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      decoded += plus && text[i] == '+' ? ' ' : text[i];
    }
  }
  return decoded;
}

std::optional<std::string> FormValue(const std::string& form, const std::string& name) {
  const std::string start = absl::StrCat(name, "=");
  for (const auto field : absl::StrSplit(form, '&')) {
    if (field.substr(0, start.size()) != start) continue;
    std::string value = DecodeUrl(std::string(field.substr(start.size())), true);
    if (value.size() > kLongestValue) return std::nullopt;
    return value;
  }
  return std::nullopt;
}

std::optional<std::string> QueryValue(const HttpRequest& request, const std::string& name) {
  return FormValue(request.query, name);
}

std::string HeaderOf(const HttpRequest& request, const std::string& name) {
  const auto header = request.headers.find(name);
  return header == request.headers.end() ? "" : header->second;
}

std::string HeadOf(const HttpResponse& response) {
  std::string head = absl::StrCat("HTTP/1.1 ", response.status, " ", ReasonOf(response.status),
                                  "\r\nContent-Type: ", response.content_type, "\r\n");
  bool says_how_to_keep_it = false;
  for (const auto& [name, value] : response.headers) {
    absl::StrAppend(&head, name, ": ", value, "\r\n");
    says_how_to_keep_it |= name == "Cache-Control";
  }
  if (!says_how_to_keep_it) absl::StrAppend(&head, "Cache-Control: no-store\r\n");
  // A form that is sent without a referrer has no origin either, and would be refused.
  absl::StrAppend(&head, "Referrer-Policy: ", response.has_form ? "same-origin" : "no-referrer",
                  "\r\n");
  absl::StrAppend(&head,
                  "Content-Security-Policy: default-src 'self'; base-uri 'none'; form-action ",
                  response.has_form ? "'self'" : "'none'",
                  "; frame-ancestors 'none'; object-src 'none'\r\n", kSecurityHeaders);
  return head;
}

bool TakesGzip(const HttpRequest& request) {
  const std::string accepted = HeaderOf(request, "accept-encoding");
  for (const absl::string_view coding : absl::StrSplit(accepted, ',')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(coding, ';');
    if (absl::StripAsciiWhitespace(parts[0]) != "gzip") continue;
    double quality = 1;
    if (parts.size() > 1) {
      const absl::string_view weight = absl::StripAsciiWhitespace(parts[1]);
      if (!absl::StartsWith(weight, "q=") || !absl::SimpleAtod(weight.substr(2), &quality))
        continue;
    }
    return quality > 0;
  }
  return false;
}

HttpResponse MethodNotAllowed(const std::string& allowed) {
  return {
      405, "text/plain; charset=utf-8", absl::StrCat("only ", allowed, "\n"), {{"Allow", allowed}}};
}

}  // namespace stagecoach
