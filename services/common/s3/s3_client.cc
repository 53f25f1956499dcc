#include "services/common/s3/s3_client.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "services/common/s3/retry.h"
#include "services/common/s3/s3_xml.h"

namespace stagecoach {
namespace {

constexpr size_t kPieceBytes = size_t{8} << 20;  // of a long read, one request each

std::string CodeOf(const HttpAnswer& answer) { return XmlText(answer.body, "Code"); }

std::string Sha256Of(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.Hex();
}

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string Md5Of(std::span<const std::byte> bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned length = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, EVP_md5(), nullptr) != 1) {
    return "";
  }
  return std::string(reinterpret_cast<const char*>(digest.data()), length);
}

bool AreBadCredentials(const std::string& code) {
  return code == "ExpiredToken" || code == "InvalidToken" || code == "InvalidAccessKeyId" ||
         code == "TokenRefreshRequired";
}

// Keys in a listing come with what XML cannot hold as %XX, if the server says so.
std::string KeyOf(const std::string& text, bool by_url) {
  if (!by_url) return text;
  std::string key;
  for (size_t at = 0; at < text.size(); ++at) {
    const auto digit = [&](size_t place) {
      return place < text.size() && absl::ascii_isxdigit(static_cast<unsigned char>(text[place]));
    };
    if (text[at] == '%' && digit(at + 1) && digit(at + 2)) {
      key += absl::HexStringToBytes(text.substr(at + 1, 2));
      at += 2;
    } else {
      key.push_back(text[at] == '+' ? ' ' : text[at]);
    }
  }
  return key;
}

// Of "2026-11-30T19:21:14.000Z"; 0: it is no time.
double SecondsOf(const std::string& text) {
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, &error)) return 0;
  return static_cast<double>(absl::ToUnixMillis(time)) / 1000;
}

std::string PartList(const std::vector<std::string>& etags) {
  std::string xml = "<CompleteMultipartUpload>";
  for (size_t part = 0; part < etags.size(); ++part) {
    absl::StrAppend(&xml, "<Part><PartNumber>", part + 1, "</PartNumber><ETag>",
                    XmlEscaped(etags[part]), "</ETag></Part>");
  }
  return absl::StrCat(xml, "</CompleteMultipartUpload>");
}

}  // namespace

std::string ContentMd5(std::span<const std::byte> bytes) {
  return absl::Base64Escape(Md5Of(bytes));
}

std::string Md5Hex(std::span<const std::byte> bytes) {
  return absl::BytesToHexString(Md5Of(bytes));
}

std::string WordsOf(const HttpAnswer& answer) {
  const std::string code = CodeOf(answer);
  return absl::StrCat("HTTP ", answer.status, code.empty() ? "" : " ", code.substr(0, 100),
                      code.empty() ? "" : ": ", XmlText(answer.body, "Message").substr(0, 300));
}

bool IsPassing(const HttpAnswer& answer) {
  if (answer.status == 500 || (answer.status >= 502 && answer.status <= 504)) return true;
  if (answer.status == 409 || answer.status == 429 || answer.status == 408) return true;
  return answer.status == 400 && CodeOf(answer) == "RequestTimeout";
}

std::string S3Client::Named(const std::string& key) const {
  return absl::StrCat(kS3Scheme, options_.location.bucket, "/", key);
}

absl::Status S3Client::ErrorOf(const Request& request, const HttpAnswer& answer) const {
  const std::string code = CodeOf(answer), words = WordsOf(answer);
  const std::string what = absl::StrCat(request.method, " ", Named(request.key), ": ", words);
  const std::string store = absl::StrCat(options_.location.flag, "=", options_.location.ToString());
  const std::string region = answer.Header("x-amz-bucket-region");
  if (code == "NoSuchBucket") {
    return absl::FailedPreconditionError(absl::StrCat(
        what, "; ", store, ": ", options_.location.base,
        " has no such bucket: make it, or correct ", options_.location.flag, " or --s3-endpoint"));
  }
  if (answer.status == 301 || answer.status == 307 || code == "AuthorizationHeaderMalformed") {
    return absl::FailedPreconditionError(absl::StrCat(
        what, "; ", store, ": the bucket is of another region than ", options_.location.region,
        ": set AWS_REGION", region.empty() ? "" : "=", region));
  }
  if (code == "RequestTimeTooSkewed") {
    return absl::PermissionDeniedError(absl::StrCat(
        what, "; the server's clock says ", answer.Header("date"), ": set this machine's clock"));
  }
  if (answer.status == 401 || answer.status == 403 || AreBadCredentials(code)) {
    return absl::PermissionDeniedError(absl::StrCat(
        what, "; ", store,
        ": the coordinator's credentials (AWS_ACCESS_KEY_ID, "
        "~/.aws/credentials or the instance's role) are wrong, have expired, or may not do this: "
        "renew them"));
  }
  absl::StatusCode status = absl::StatusCode::kUnknown;
  if (answer.status == 404) status = absl::StatusCode::kNotFound;
  if (answer.status == 412) status = absl::StatusCode::kAlreadyExists;
  if (answer.status == 416) status = absl::StatusCode::kOutOfRange;
  if (code.starts_with("InvalidPart"))
    status = absl::StatusCode::kDataLoss;  // somebody replaced it
  if (answer.status == 501) status = absl::StatusCode::kUnimplemented;
  if (answer.status == 507 || code == "QuotaExceeded") {
    status = absl::StatusCode::kResourceExhausted;
  }
  return absl::Status(status, what);
}

absl::StatusOr<HttpAnswer> S3Client::Once(const Request& request, size_t* received) {
  ASSIGN_OR_RETURN(const S3Credentials credentials, credentials_.Get());
  const S3Location& location = options_.location;
  UnsignedRequest to_sign{.method = request.method,
                          .host = location.host,
                          .path = location.PathOf(request.key),
                          .query = request.query,
                          .headers = request.headers,
                          .payload_sha256 = Sha256Of(request.body)};
  HttpCall call{.method = request.method, .url = {}, .headers = request.headers};
  const std::string query = CanonicalQuery(request.query);
  call.url =
      absl::StrCat(location.base, EncodeUriPath(to_sign.path), query.empty() ? "" : "?", query);
  call.body = request.body;
  call.target = request.target;
  // What moves bytes, or makes an object of its parts, may be silent for longer.
  const bool short_call = request.body.empty() && request.target.empty();
  if (short_call && request.method != "POST") {
    call.silent_seconds = std::clamp(options_.give_up_seconds, 1.0, call.silent_seconds);
  }
  const NamedTexts added = SignedHeaders(
      to_sign, credentials,
      {.region = location.region, .time = static_cast<int64_t>(clock_.UnixSeconds())});
  call.headers.insert(call.headers.end(), added.begin(), added.end());
  return transfer_.Do(call, received);
}

// An answer of 2xx, whose target is full.
absl::StatusOr<HttpAnswer> S3Client::Do(const Request& request) {
  Retry retry(&transfer_, options_.give_up_seconds, options_.first_pause_seconds, &clock_);
  bool renewed = false;
  while (true) {
    absl::StatusOr<HttpAnswer> answer = Once(request, nullptr);
    absl::Status error = answer.status();
    if (answer.ok()) {
      if (answer->ok()) return answer;
      error = ErrorOf(request, *answer);
      if (AreBadCredentials(CodeOf(*answer)) && !std::exchange(renewed, true)) {
        credentials_.Forget();  // a role's or a file's may be new ones by now
        continue;
      }
      if (!IsPassing(*answer)) return error;
    } else if (!absl::IsUnavailable(error)) {
      return error;
    }
    RETURN_IF_ERROR(Annotate(retry.After(error), Named(request.key)));
  }
}

absl::Status S3Client::Put(const std::string& key, std::span<const std::byte> bytes) {
  return Do({.method = "PUT", .key = key, .body = bytes}).status();
}

absl::Status S3Client::PutIfAbsent(const std::string& key, std::span<const std::byte> bytes) {
  const absl::Status put =
      Do({.method = "PUT", .key = key, .headers = {{"if-none-match", "*"}}, .body = bytes})
          .status();
  if (!absl::IsAlreadyExists(put)) return put;
  const absl::StatusOr<std::string> there = Get(key);
  if (!there.ok()) {
    return absl::IsNotFound(there.status()) ? put : there.status();  // removed meanwhile
  }
  const auto content = BytesOf(*there);
  const bool ours = std::equal(content.begin(), content.end(), bytes.begin(), bytes.end());
  return ours ? absl::OkStatus() : put;
}

absl::StatusOr<int64_t> S3Client::Size(const std::string& key) {
  ASSIGN_OR_RETURN(const S3Entry entry, Look(key));
  return entry.bytes;
}

absl::StatusOr<S3Entry> S3Client::Look(const std::string& key) {
  ASSIGN_OR_RETURN(const HttpAnswer answer, Do({.method = "HEAD", .key = key}));
  S3Entry entry{.key = key, .etag = answer.Header("etag")};
  if (absl::SimpleAtoi(answer.Header("content-length"), &entry.bytes) && entry.bytes >= 0) {
    return entry;
  }
  return absl::DataLossError(absl::StrCat(Named(key), ": the server tells no size"));
}

absl::StatusOr<std::string> S3Client::Get(const std::string& key) {
  ASSIGN_OR_RETURN(HttpAnswer answer, Do({.method = "GET", .key = key}));
  return std::move(answer.body);
}

absl::Status S3Client::Read(const std::string& key, int64_t offset, std::span<std::byte> target) {
  Retry retry(&transfer_, options_.give_up_seconds, options_.first_pause_seconds, &clock_);
  while (!target.empty()) {
    const auto piece = target.first(std::min(target.size(), kPieceBytes));
    const std::string range =
        absl::StrCat("bytes=", offset, "-", offset + static_cast<int64_t>(piece.size()) - 1);
    const Request request{
        .method = "GET", .key = key, .headers = {{"range", range}}, .target = piece};
    size_t received = 0;
    absl::StatusOr<HttpAnswer> answer = Once(request, &received);
    absl::Status error = answer.status();
    // Without a range in the answer its bytes are others than those asked for.
    if (answer.ok() && answer->status == 200 && offset > 0) {
      return absl::DataLossError(absl::StrCat(Named(key), ": the server reads no ranges"));
    }
    if (received > 0) {
      offset += static_cast<int64_t>(received);
      target = target.subspan(received);
      retry.Moved();
    }
    if (answer.ok()) {
      if (received == piece.size()) continue;
      error = answer->ok()
                  ? absl::DataLossError(absl::StrCat(Named(key), ": ended at byte ", offset))
                  : ErrorOf(request, *answer);
      if (!IsPassing(*answer)) return error;
    } else if (!absl::IsUnavailable(error)) {
      return error;
    }
    RETURN_IF_ERROR(Annotate(retry.After(error), absl::StrCat(Named(key), " at byte ", offset)));
  }
  return absl::OkStatus();
}

absl::Status S3Client::Delete(const std::string& key) {
  const absl::Status removed = Do({.method = "DELETE", .key = key}).status();
  return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
}

absl::StatusOr<S3Listing> S3Client::List(const std::string& prefix, bool flat, size_t most) {
  S3Listing listing;
  std::string next;
  while (true) {
    Request request{.method = "GET",
                    .key = "",
                    .query = {{"list-type", "2"},
                              {"prefix", prefix},
                              {"encoding-type", "url"},
                              {"max-keys", absl::StrCat(std::min<size_t>(most, 1000))}}};
    if (flat) request.query.emplace_back("delimiter", "/");
    if (!next.empty()) request.query.emplace_back("continuation-token", next);
    ASSIGN_OR_RETURN(const HttpAnswer answer, Do(request));
    const bool by_url = XmlText(answer.body, "EncodingType") == "url";
    for (const std::string& entry : XmlElements(answer.body, "Contents")) {
      S3Entry object{.key = KeyOf(XmlText(entry, "Key"), by_url),
                     .etag = XmlText(entry, "ETag"),
                     .modified_seconds = SecondsOf(XmlText(entry, "LastModified"))};
      if (!absl::SimpleAtoi(XmlText(entry, "Size"), &object.bytes)) {
        return absl::DataLossError(absl::StrCat(Named(prefix), ": a listing without sizes"));
      }
      // Nothing is removed that was not asked for, whatever a server lists.
      if (!object.key.starts_with(prefix)) continue;
      listing.objects.push_back(std::move(object));
    }
    for (const std::string& entry : XmlElements(answer.body, "CommonPrefixes")) {
      std::string below = KeyOf(XmlText(entry, "Prefix"), by_url);
      if (below.size() > prefix.size() && below.starts_with(prefix) && below.ends_with('/')) {
        listing.prefixes.push_back(std::move(below));
      }
    }
    const std::string before = std::exchange(next, XmlText(answer.body, "NextContinuationToken"));
    const bool more = XmlText(answer.body, "IsTruncated") == "true";
    if (!more || listing.objects.size() + listing.prefixes.size() >= most) return listing;
    if (next.empty() || next == before) {
      return absl::DataLossError(absl::StrCat(Named(prefix), ": a listing that cannot go on"));
    }
  }
}

absl::StatusOr<std::string> S3Client::BeginParts(const std::string& key) {
  ASSIGN_OR_RETURN(const HttpAnswer answer,
                   Do({.method = "POST", .key = key, .query = {{"uploads", ""}}}));
  std::string id = XmlText(answer.body, "UploadId");
  if (id.empty()) return absl::DataLossError(absl::StrCat(Named(key), ": an upload without id"));
  return id;
}

absl::Status S3Client::CompleteParts(const std::string& key, const std::string& upload_id,
                                     const std::vector<std::string>& etags, int64_t bytes) {
  const std::string list = PartList(etags);
  absl::StatusOr<HttpAnswer> answer =
      Do({.method = "POST", .key = key, .query = {{"uploadId", upload_id}}, .body = BytesOf(list)});
  absl::Status status = answer.status();
  // An error may come after the status: the answer began before the work was done.
  if (answer.ok() && !CodeOf(*answer).empty()) status = absl::UnavailableError(WordsOf(*answer));
  if (!status.ok() && !absl::IsNotFound(status) && !absl::IsUnavailable(status)) return status;
  // NOT_FOUND: no such upload any more, as after a lost answer.
  const absl::StatusOr<int64_t> size = Size(key);
  if (!size.ok()) return status.ok() ? size.status() : status;
  if (*size == bytes) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(Named(key), ": ", *size, " bytes are there, ", bytes, " were written"));
}

absl::StatusOr<std::vector<S3Upload>> S3Client::ListUploads(const std::string& prefix) {
  std::vector<S3Upload> uploads;
  std::string after_key, after_id;
  while (true) {
    Request request{.method = "GET", .key = "", .query = {{"uploads", ""}, {"prefix", prefix}}};
    if (!after_key.empty()) {
      request.query.emplace_back("key-marker", after_key);
      request.query.emplace_back("upload-id-marker", after_id);
    }
    ASSIGN_OR_RETURN(const HttpAnswer answer, Do(request));
    for (const std::string& entry : XmlElements(answer.body, "Upload")) {
      S3Upload upload{.key = XmlText(entry, "Key"),
                      .id = XmlText(entry, "UploadId"),
                      .begun_seconds = SecondsOf(XmlText(entry, "Initiated"))};
      if (upload.key.starts_with(prefix) && !upload.id.empty()) {
        uploads.push_back(std::move(upload));
      }
    }
    if (XmlText(answer.body, "IsTruncated") != "true") return uploads;
    const std::string before = absl::StrCat(after_key, "\n", after_id);
    after_key = XmlText(answer.body, "NextKeyMarker");
    after_id = XmlText(answer.body, "NextUploadIdMarker");
    if (after_key.empty() || absl::StrCat(after_key, "\n", after_id) == before) {
      return absl::DataLossError(
          absl::StrCat(Named(prefix), ": a listing of uploads that cannot go on"));
    }
  }
}

absl::StatusOr<std::vector<S3Part>> S3Client::ListParts(const std::string& key,
                                                        const std::string& upload_id) {
  std::vector<S3Part> parts;
  int64_t marker = 0;
  while (true) {
    Request request{.method = "GET", .key = key, .query = {{"uploadId", upload_id}}};
    if (marker > 0) request.query.emplace_back("part-number-marker", absl::StrCat(marker));
    ASSIGN_OR_RETURN(const HttpAnswer answer, Do(request));
    const std::vector<std::string> entries = XmlElements(answer.body, "Part");
    for (const std::string& entry : entries) {
      S3Part part{.etag = XmlText(entry, "ETag")};
      if (!absl::SimpleAtoi(XmlText(entry, "PartNumber"), &marker) ||
          !absl::SimpleAtoi(XmlText(entry, "Size"), &part.bytes) || part.bytes < 0) {
        return absl::DataLossError(absl::StrCat(Named(key), ": a listing of parts without sizes"));
      }
      if (marker != std::ssize(parts) + 1) return parts;
      parts.push_back(std::move(part));
    }
    if (XmlText(answer.body, "IsTruncated") != "true" || entries.empty()) return parts;
  }
}

absl::Status S3Client::DropUpload(const std::string& key, const std::string& upload_id) {
  const absl::Status dropped =
      Do({.method = "DELETE", .key = key, .query = {{"uploadId", upload_id}}}).status();
  return absl::IsNotFound(dropped) ? absl::OkStatus() : dropped;
}

absl::Status S3Client::DropParts(const std::string& prefix) {
  ASSIGN_OR_RETURN(const std::vector<S3Upload> uploads, ListUploads(prefix));
  for (const S3Upload& upload : uploads) RETURN_IF_ERROR(DropUpload(upload.key, upload.id));
  return absl::OkStatus();
}

absl::StatusOr<std::string> S3Client::Presign(const std::string& method, const std::string& key,
                                              const NamedTexts& query, int64_t seconds) {
  ASSIGN_OR_RETURN(const S3Credentials credentials, credentials_.Get());
  const S3Location& location = options_.location;
  const UnsignedRequest request{
      .method = method, .host = location.host, .path = location.PathOf(key), .query = query};
  const SigningScope scope{.region = location.region,
                           .time = static_cast<int64_t>(clock_.UnixSeconds())};
  return absl::StrCat(location.base, EncodeUriPath(request.path), "?",
                      PresignedQuery(request, credentials, scope,
                                     std::clamp<int64_t>(seconds, 1, kMostPresignedSeconds)));
}

}  // namespace stagecoach
