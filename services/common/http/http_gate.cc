#include "services/common/http/http_gate.h"

#include <arpa/inet.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/files/hash.h"

namespace stagecoach {
namespace {

constexpr char kPlain[] = "text/plain; charset=utf-8";
constexpr char kCookieName[] = "stagecoach-login";
constexpr int kKeyBytes = 32;
constexpr char kForm[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta "
    "charset=\"utf-8\"><title>Stagecoach</title></head>\n"
    "<body><h1>Stagecoach</h1><form method=\"post\" action=\"/login\">\n"
    "<p><label>Token <input type=\"password\" name=\"token\" autocomplete=\"current-password\" "
    "required autofocus></label>\n<button>Log in</button></p></form></body></html>\n";

bool Observes(const HttpRequest& request) {
  return request.method == "GET" || request.method == "HEAD";
}

// In the form of the API where a program asks it.
HttpResponse Refusal(const HttpRequest& request, int status, const char* code, const char* reason) {
  if (!absl::StartsWith(request.path, "/api/")) return {status, kPlain, absl::StrCat(reason, "\n")};
  return {status, "application/json",
          absl::StrCat("{\"error\":{\"code\":\"", code, "\",\"message\":\"", reason, "\"}}")};
}

HttpResponse LoginPage(int status) {
  HttpResponse form{status, "text/html; charset=utf-8", kForm};
  form.has_form = true;
  return form;
}

HttpResponse LogInFirst(const HttpRequest& request) {
  if (Observes(request) && absl::StrContains(HeaderOf(request, "accept"), "text/html")) {
    return {303, kPlain, "log in at /login\n", {{"Location", "/login"}}};
  }
  HttpResponse refused = Refusal(request, 401, "UNAUTHENTICATED",
                                 "a token is needed that stands in the server's "
                                 "--http-token-file: send Authorization: Bearer TOKEN, or log in "
                                 "at /login");
  refused.headers = {{"WWW-Authenticate", "Bearer"}};
  return refused;
}

HttpResponse TooManyGuesses(const HttpRequest& request) {
  HttpResponse refused =
      Refusal(request, 429, "RESOURCE_EXHAUSTED",
              "too many unknown tokens from this address: try again in a second");
  refused.headers = {{"Retry-After", "1"}};
  return refused;
}

std::string CookieIn(const HttpRequest& request) {
  const std::string start = absl::StrCat(kCookieName, "=");
  for (const auto part : absl::StrSplit(HeaderOf(request, "cookie"), ';')) {
    const auto cookie = absl::StripAsciiWhitespace(part);
    if (absl::StartsWith(cookie, start)) return std::string(cookie.substr(start.size()));
  }
  return "";
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpGate>> HttpGate::Make(const Options& options) {
  std::unique_ptr<TokenFile> tokens;
  if (!options.token_file.empty()) {
    ASSIGN_OR_RETURN(tokens, TokenFile::Open(kHttpTokens, options.token_file));
  }
  return std::unique_ptr<HttpGate>(new HttpGate(options, std::move(tokens)));
}

HttpGate::HttpGate(Options options, std::unique_ptr<TokenFile> tokens)
    : options_(std::move(options)),
      tokens_(std::move(tokens)),
      key_(kKeyBytes, '\0'),
      guesses_(options_.guesses != nullptr ? options_.guesses
                                           : std::make_shared<TokenGuesses>(options_.clock)) {
  CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(key_.data()), kKeyBytes) == 1);
  for (std::string& name : options_.host_names) absl::AsciiStrToLower(&name);
}

std::optional<HttpResponse> HttpGate::Check(const HttpRequest& request) {
  const std::string host = HeaderOf(request, "host");
  if (options_.checks_host && !IsOwnHost(host, options_.host_names)) {
    return HttpResponse{
        403, kPlain,
        "this Host is not known here: use localhost, or start with --http-host NAME\n"};
  }
  const auto origin = request.headers.find("origin");
  if (!Observes(request) && origin != request.headers.end() &&
      !IsOwnOrigin(origin->second, host, options_.host_names)) {
    return Refusal(request, 403, "PERMISSION_DENIED",
                   "the Origin is another site's; behind a proxy, start with --http-host NAME");
  }
  return tokens_ == nullptr ? std::nullopt : CheckToken(request);
}

std::optional<HttpResponse> HttpGate::CheckToken(const HttpRequest& request) {
  // One word each, for those who watch over the process.
  if (Observes(request) && (request.path == "/livez" || request.path == "/readyz")) {
    return std::nullopt;
  }
  if (request.path == "/login") return LogIn(request);
  const std::string authorization = HeaderOf(request, "authorization");
  std::optional<TokenLine> line;
  if (absl::StartsWithIgnoreCase(authorization, "Bearer ")) {
    const std::string digest = Sha256Hex(authorization.substr(7));
    if (!guesses_->MayTry(request.peer, digest)) return TooManyGuesses(request);
    line = FindSent(request, digest);
  } else if (const std::string digest = DigestOf(CookieIn(request)); !digest.empty()) {
    line = tokens_->Find(digest);
  }
  if (!line.has_value()) return LogInFirst(request);
  if (Observes(request) || line->marked) return std::nullopt;
  return Refusal(request, 403, "PERMISSION_DENIED",
                 "this token may only observe: its line in --http-token-file does not say control");
}

std::optional<TokenLine> HttpGate::FindSent(const HttpRequest& request, const std::string& digest) {
  const std::optional<TokenLine> line = tokens_->Find(digest);
  if (!line.has_value()) guesses_->Failed(request.peer, digest);
  return line;
}

HttpResponse HttpGate::LogIn(const HttpRequest& request) {
  if (Observes(request)) return LoginPage(200);
  if (request.method != "POST") return MethodNotAllowed("GET, HEAD, POST");
  const std::string digest = Sha256Hex(FormValue(request.body, "token").value_or(""));
  if (!guesses_->MayTry(request.peer, digest)) return TooManyGuesses(request);
  if (!FindSent(request, digest).has_value()) return LoginPage(401);
  return {303,
          kPlain,
          "logged in\n",
          {{"Location", "/"},
           {"Set-Cookie", absl::StrCat(kCookieName, "=", CookieOf(digest),
                                       "; HttpOnly; SameSite=Strict; Path=/; Max-Age=",
                                       static_cast<int>(kLoginSeconds))}}};
}

std::string HttpGate::CookieOf(const std::string& digest) const {
  const auto end = static_cast<int64_t>(options_.clock->MonotonicSeconds() + kLoginSeconds);
  const std::string text = absl::StrCat(end, ".", digest);
  return absl::StrCat(text, ".", Sign(text));
}

std::string HttpGate::DigestOf(const std::string& cookie) const {
  const std::vector<std::string> parts = absl::StrSplit(cookie, '.');
  int64_t end = 0;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &end)) return "";
  const std::string signature = Sign(absl::StrCat(parts[0], ".", parts[1]));
  if (signature.size() != parts[2].size() ||
      CRYPTO_memcmp(signature.data(), parts[2].data(), signature.size()) != 0) {
    return "";
  }
  return options_.clock->MonotonicSeconds() < static_cast<double>(end) ? parts[1] : "";
}

std::string HttpGate::Sign(const std::string& text) const {
  unsigned char code[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  CHECK(HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()),
             reinterpret_cast<const unsigned char*>(text.data()), text.size(), code,
             &size) != nullptr);
  return absl::BytesToHexString(std::string(code, code + size));
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

bool IsOwnOrigin(const std::string& origin, const std::string& host,
                 const std::vector<std::string>& host_names) {
  std::string place = absl::AsciiStrToLower(origin);
  for (const char* scheme : {"http://", "https://"}) {
    if (!absl::StartsWith(place, scheme)) continue;
    place = place.substr(std::string(scheme).size());
    if (!host.empty() && place == absl::AsciiStrToLower(host)) return true;
    const std::string name = place.substr(0, place.find(':'));
    return std::find(host_names.begin(), host_names.end(), name) != host_names.end();
  }
  return false;  // "null", or no page of the web
}

}  // namespace stagecoach
