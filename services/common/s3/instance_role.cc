#include "services/common/s3/instance_role.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/errors/status.h"
#include "base/json/json_field.h"

namespace stagecoach {
namespace {

constexpr char kRolePath[] = "/latest/meta-data/iam/security-credentials/";

absl::StatusOr<std::string> Ask(HttpTransfer& transfer, const std::string& method,
                                const std::string& url, const NamedTexts& headers) {
  ASSIGN_OR_RETURN(HttpAnswer answer, transfer.Do({.method = method,
                                                   .url = url,
                                                   .headers = headers,
                                                   .connect_seconds = 1,
                                                   .silent_seconds = 5}));
  if (answer.ok()) return std::move(answer.body);
  return absl::Status(
      answer.status == 404 ? absl::StatusCode::kNotFound : absl::StatusCode::kUnavailable,
      absl::StrCat(method, " ", url, ": HTTP ", answer.status));
}

absl::StatusOr<S3Credentials> Parse(const std::string& text) {
  ASSIGN_OR_RETURN(const nlohmann::json document, ParseJsonDocument(text));
  const JsonField fields(&document);
  S3Credentials credentials;
  ASSIGN_OR_RETURN(credentials.access_key, fields.Of("AccessKeyId").Text());
  ASSIGN_OR_RETURN(credentials.secret_key, fields.Of("SecretAccessKey").Text());
  ASSIGN_OR_RETURN(credentials.session_token, fields.Of("Token").Text());
  ASSIGN_OR_RETURN(const std::string expires, fields.Of("Expiration").Text());
  absl::Time time;
  std::string why;
  if (!absl::ParseTime(absl::RFC3339_full, expires, &time, &why)) {
    return absl::InvalidArgumentError(absl::StrCat("Expiration: ", why));
  }
  credentials.expires = absl::ToUnixSeconds(time);
  return credentials;
}

}  // namespace

absl::StatusOr<S3Credentials> FetchInstanceRole(HttpTransfer& transfer,
                                                const std::string& service) {
  absl::StatusOr<std::string> token =
      Ask(transfer, "PUT", absl::StrCat(service, "/latest/api/token"),
          {{"X-aws-ec2-metadata-token-ttl-seconds", "300"}});
  // Elsewhere than at Amazon nothing answers there.
  if (!token.ok()) return absl::NotFoundError(token.status().message());
  const NamedTexts headers = {{"X-aws-ec2-metadata-token", *token}};
  ASSIGN_OR_RETURN(const std::string roles,
                   Ask(transfer, "GET", absl::StrCat(service, kRolePath), headers));
  const std::string role(absl::StripAsciiWhitespace(roles.substr(0, roles.find('\n'))));
  if (role.empty()) return absl::NotFoundError("this machine has no instance role");
  const std::string url = absl::StrCat(service, kRolePath, EncodeUriPart(role));
  ASSIGN_OR_RETURN(const std::string text, Ask(transfer, "GET", url, headers));
  absl::StatusOr<S3Credentials> credentials = Parse(text);
  if (credentials.ok()) return credentials;
  return absl::UnavailableError(absl::StrCat("GET ", url, ": ", credentials.status().message()));
}

}  // namespace stagecoach
