#include "services/common/s3/s3_credentials.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <map>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/errors/status.h"
#include "services/common/s3/instance_role.h"
#include "services/common/tls/regular_file.h"

namespace stagecoach {
namespace {

constexpr char kMetadataService[] = "http://169.254.169.254";

// Keys of one part "[profile]" of a file; nullopt if it has no such part.
std::optional<std::map<std::string, std::string>> PartOfFile(const std::string& text,
                                                             const std::string& profile) {
  std::optional<std::map<std::string, std::string>> part;
  bool inside = false;
  for (const absl::string_view raw : absl::StrSplit(text, '\n')) {
    const absl::string_view line = absl::StripAsciiWhitespace(raw);
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line[0] == '[') {
      inside = line == absl::StrCat("[", profile, "]");
      if (inside && !part.has_value()) part.emplace();
      continue;
    }
    const size_t equals = line.find('=');
    if (!inside || equals == absl::string_view::npos) continue;
    (*part)[absl::AsciiStrToLower(absl::StripAsciiWhitespace(line.substr(0, equals)))] =
        std::string(absl::StripAsciiWhitespace(line.substr(equals + 1)));
  }
  return part;
}

}  // namespace

std::string S3CredentialSource::OfProcess(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

absl::StatusOr<std::optional<S3Credentials>> S3CredentialSource::OfFile(
    const std::string& path, const std::string& profile) {
  struct stat information {};
  if (stat(path.c_str(), &information) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::optional<S3Credentials>();
    return absl::ErrnoToStatus(errno, path);
  }
  if ((information.st_mode & 077) != 0) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s has the rights %04o, so others may read or write it: chmod 0600", path,
                        information.st_mode & 07777));
  }
  ASSIGN_OR_RETURN(const std::string text, Annotate(ReadRegularFile(path), path));
  std::optional<std::map<std::string, std::string>> part = PartOfFile(text, profile);
  if (!part.has_value()) return std::optional<S3Credentials>();
  S3Credentials credentials{.access_key = (*part)["aws_access_key_id"],
                            .secret_key = (*part)["aws_secret_access_key"],
                            .session_token = (*part)["aws_session_token"]};
  if (credentials.access_key.empty() || credentials.secret_key.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": [", profile, "] wants both aws_access_key_id and aws_secret_access_key"));
  }
  return std::optional<S3Credentials>(std::move(credentials));
}

absl::StatusOr<S3Credentials> S3CredentialSource::Read() {
  const std::string access = environment_("AWS_ACCESS_KEY_ID");
  const std::string secret = environment_("AWS_SECRET_ACCESS_KEY");
  if (!access.empty() && !secret.empty()) {
    return S3Credentials{access, secret, environment_("AWS_SESSION_TOKEN")};
  }
  if (!access.empty() || !secret.empty()) {
    return absl::InvalidArgumentError(
        "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY: one of them is set; set both or none");
  }
  std::string path = environment_("AWS_SHARED_CREDENTIALS_FILE");
  if (path.empty()) path = absl::StrCat(environment_("HOME"), "/.aws/credentials");
  std::string profile = environment_("AWS_PROFILE");
  if (profile.empty()) profile = "default";
  ASSIGN_OR_RETURN(std::optional<S3Credentials> of_file, OfFile(path, profile));
  if (of_file.has_value()) return *std::move(of_file);
  std::string role = "AWS_EC2_METADATA_DISABLED is true";
  if (absl::AsciiStrToLower(environment_("AWS_EC2_METADATA_DISABLED")) != "true") {
    std::string service = environment_("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    while (service.ends_with('/')) service.pop_back();
    absl::StatusOr<S3Credentials> credentials =
        FetchInstanceRole(transfer_, service.empty() ? kMetadataService : service);
    if (credentials.ok() || !absl::IsNotFound(credentials.status())) return credentials;
    role = std::string(credentials.status().message());
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "no credentials for S3: AWS_ACCESS_KEY_ID is not set; ", path, " has no part [", profile,
      "]; no instance role (", role, "): give the coordinator one of the three"));
}

absl::StatusOr<S3Credentials> S3CredentialSource::Get() {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto now = static_cast<int64_t>(clock_.UnixSeconds());
  if (kept_.has_value() && (kept_->expires == 0 || now + kEarlySeconds < kept_->expires)) {
    return *kept_;
  }
  absl::StatusOr<S3Credentials> credentials = Read();
  if (credentials.ok()) {
    kept_ = *credentials;
  } else if (kept_.has_value() && now < kept_->expires) {
    return *kept_;  // still good; the next call asks again
  }
  return credentials;
}

void S3CredentialSource::Forget() {
  std::lock_guard<std::mutex> lock(mutex_);
  kept_.reset();
}

std::string EndpointOfProcess(const std::string& given) {
  std::string endpoint = given;
  for (const char* const name : {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}) {
    if (endpoint.empty()) endpoint = S3CredentialSource::OfProcess(name);
  }
  return endpoint;
}

std::string RegionOfProcess() {
  const std::string region = S3CredentialSource::OfProcess("AWS_REGION");
  return region.empty() ? S3CredentialSource::OfProcess("AWS_DEFAULT_REGION") : region;
}

}  // namespace stagecoach
