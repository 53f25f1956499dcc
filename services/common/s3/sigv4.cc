#include "services/common/s3/sigv4.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/errors/check.h"
#include "base/files/hash.h"

namespace stagecoach {
namespace {

constexpr char kAlgorithm[] = "AWS4-HMAC-SHA256";

std::string Encode(std::string_view text, bool is_path) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || c == '-' || c == '.' || c == '_' || c == '~' ||
        (is_path && c == '/')) {
      encoded.push_back(c);
    } else {
      encoded.append({'%', kDigits[byte >> 4], kDigits[byte & 15]});
    }
  }
  return encoded;
}

std::string Hmac(const std::string& key, const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned length = 0;
  CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
             reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(),
             &length) != nullptr)
      << "OpenSSL has no HMAC of SHA-256";
  return {reinterpret_cast<const char*>(digest.data()), length};
}

std::string TimeOf(const SigningScope& scope, const char* format) {
  return absl::FormatTime(format, absl::FromUnixSeconds(scope.time), absl::UTCTimeZone());
}
std::string StampOf(const SigningScope& scope) { return TimeOf(scope, "%Y%m%dT%H%M%SZ"); }
std::string ScopeText(const SigningScope& scope) {
  return absl::StrCat(TimeOf(scope, "%Y%m%d"), "/", scope.region, "/", scope.service,
                      "/aws4_request");
}

// By lower-case name: values without outer and doubled white space, those of one name joined.
std::map<std::string, std::string> CanonicalHeaders(const UnsignedRequest& request) {
  std::map<std::string, std::vector<std::string>> values;
  values["host"] = {request.host};
  for (const auto& [name, value] : request.headers) {
    const std::vector<std::string> words =
        absl::StrSplit(value, absl::ByAnyChar(" \t\r\n\v\f"), absl::SkipEmpty());
    values[absl::AsciiStrToLower(name)].push_back(absl::StrJoin(words, " "));
  }
  std::map<std::string, std::string> headers;
  for (const auto& [name, list] : values) headers[name] = absl::StrJoin(list, ",");
  return headers;
}

// "host;x-amz-date".
std::string NamesOf(const std::map<std::string, std::string>& headers) {
  return absl::StrJoin(headers, ";",
                       [](std::string* out, const auto& header) { *out += header.first; });
}

std::string Signature(const UnsignedRequest& request,
                      const std::map<std::string, std::string>& headers,
                      const S3Credentials& credentials, const SigningScope& scope) {
  std::string canonical = absl::StrCat(request.method, "\n", EncodeUriPath(request.path), "\n",
                                       CanonicalQuery(request.query), "\n");
  for (const auto& [name, value] : headers) absl::StrAppend(&canonical, name, ":", value, "\n");
  absl::StrAppend(&canonical, "\n", NamesOf(headers), "\n", request.payload_sha256);
  const std::string to_sign = absl::StrCat(kAlgorithm, "\n", StampOf(scope), "\n", ScopeText(scope),
                                           "\n", Sha256Hex(canonical));
  std::string key = absl::StrCat("AWS4", credentials.secret_key);
  const std::string day = TimeOf(scope, "%Y%m%d"), last = "aws4_request";
  for (const std::string& part : {day, scope.region, scope.service, last}) key = Hmac(key, part);
  return absl::BytesToHexString(Hmac(key, to_sign));
}

}  // namespace

std::string EncodeUriPart(std::string_view text) { return Encode(text, false); }
std::string EncodeUriPath(std::string_view path) { return Encode(path, true); }

std::string CanonicalQuery(const NamedTexts& query) {
  NamedTexts encoded;
  for (const auto& [name, value] : query) {
    encoded.emplace_back(EncodeUriPart(name), EncodeUriPart(value));
  }
  std::sort(encoded.begin(), encoded.end());
  return absl::StrJoin(encoded, "&", [](std::string* out, const auto& field) {
    absl::StrAppend(out, field.first, "=", field.second);
  });
}

NamedTexts SignedHeaders(const UnsignedRequest& request, const S3Credentials& credentials,
                         const SigningScope& scope) {
  NamedTexts added = {{"x-amz-date", StampOf(scope)},
                      {"x-amz-content-sha256", request.payload_sha256}};
  if (!credentials.session_token.empty()) {
    added.emplace_back("x-amz-security-token", credentials.session_token);
  }
  UnsignedRequest all = request;
  all.headers.insert(all.headers.end(), added.begin(), added.end());
  const std::map<std::string, std::string> headers = CanonicalHeaders(all);
  added.emplace_back("authorization",
                     absl::StrCat(kAlgorithm, " Credential=", credentials.access_key, "/",
                                  ScopeText(scope), ", SignedHeaders=", NamesOf(headers),
                                  ", Signature=", Signature(all, headers, credentials, scope)));
  return added;
}

std::string PresignedQuery(UnsignedRequest request, const S3Credentials& credentials,
                           const SigningScope& scope, int64_t seconds) {
  request.payload_sha256 = kUnsignedPayload;
  const std::map<std::string, std::string> headers = CanonicalHeaders(request);
  NamedTexts& query = request.query;
  query.emplace_back("X-Amz-Algorithm", kAlgorithm);
  query.emplace_back("X-Amz-Credential",
                     absl::StrCat(credentials.access_key, "/", ScopeText(scope)));
  query.emplace_back("X-Amz-Date", StampOf(scope));
  query.emplace_back("X-Amz-Expires", absl::StrCat(seconds));
  query.emplace_back("X-Amz-SignedHeaders", NamesOf(headers));
  if (!credentials.session_token.empty()) {
    query.emplace_back("X-Amz-Security-Token", credentials.session_token);
  }
  return absl::StrCat(CanonicalQuery(query),
                      "&X-Amz-Signature=", Signature(request, headers, credentials, scope));
}

}  // namespace stagecoach
