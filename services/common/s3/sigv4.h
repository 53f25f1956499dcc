// SigV4: signatures of requests to S3 (AWS Signature Version 4), as headers and as presigned URLs.
// Ours, because libcurl's of Debian 12 mis-signs keys with '+' or '=' and cannot presign. The bytes
// are held to botocore's (tests/oracle/s3_signatures.py).
// Threads: any; pure.
// Units:   times are seconds since 1970, UTC.
#ifndef STAGECOACH_SERVICES_COMMON_S3_SIGV4_H_
#define STAGECOACH_SERVICES_COMMON_S3_SIGV4_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stagecoach {

// Names with values, in the order given; a name may come again.
using NamedTexts = std::vector<std::pair<std::string, std::string>>;

struct S3Credentials {
  std::string access_key;
  std::string secret_key;
  std::string session_token = {};  // empty: credentials that last
  int64_t expires = 0;             // 0: never
};

inline constexpr char kUnsignedPayload[] = "UNSIGNED-PAYLOAD";

struct UnsignedRequest {
  std::string method;
  std::string host;                               // with the port, if it is not the scheme's
  std::string path;                               // decoded: "/bucket/a key"
  NamedTexts query = {};                          // decoded
  NamedTexts headers = {};                        // besides host and those that the signature adds
  std::string payload_sha256 = kUnsignedPayload;  // hexadecimal
};

struct SigningScope {
  std::string region;
  int64_t time = 0;
  std::string service = "s3";
};

// All but letters, digits, '-', '.', '_' and '~' becomes %XX; in a path '/' stays.
std::string EncodeUriPart(std::string_view text);
std::string EncodeUriPath(std::string_view path);
// "a=1&b=" as it is sent and signed: encoded, sorted.
std::string CanonicalQuery(const NamedTexts& query);

// Headers to send besides those of the request and host: x-amz-*, authorization.
NamedTexts SignedHeaders(const UnsignedRequest& request, const S3Credentials& credentials,
                         const SigningScope& scope);
// The query of a URL that makes this request for `seconds` seconds, without further headers than
// those signed.
std::string PresignedQuery(UnsignedRequest request, const S3Credentials& credentials,
                           const SigningScope& scope, int64_t seconds);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_S3_SIGV4_H_
