#include "services/common/store/direct_objects.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "services/common/s3/retry.h"
#include "services/common/s3/s3_client.h"

namespace stagecoach {
namespace {

constexpr size_t kMostReadUrls = 256;
constexpr int kPartUrls = 16;                        // of one call
constexpr size_t kReadPieceBytes = size_t{8} << 20;  // of one request

std::string NameOfObject(const StoredObject& object) {
  return absl::StrCat("store object ", object.name);
}

// A URL that has ended, or of credentials that the coordinator has renewed since.
bool HasExpired(const HttpAnswer& answer) {
  return answer.status == 401 || answer.status == 403 ||
         (answer.status == 400 && WordsOf(answer).find("Expired") != std::string::npos);
}

absl::Status Refusal(const StoredObject& object, const HttpAnswer& answer) {
  const auto code = answer.status == 404   ? absl::StatusCode::kNotFound
                    : answer.status == 507 ? absl::StatusCode::kResourceExhausted
                    : HasExpired(answer)   ? absl::StatusCode::kPermissionDenied
                                           : absl::StatusCode::kDataLoss;
  return absl::Status(
      code, absl::StrCat(NameOfObject(object), ": the bucket's server answered ", WordsOf(answer)));
}

}  // namespace

absl::StatusOr<std::string> DirectObjects::UrlOf(const StoredObject& object, v1::ObjectUse use) {
  v1::LocateObjectRequest request;
  request.set_use(use);
  ASSIGN_OR_RETURN(const v1::LocateObjectResponse located, calls_.locate(object, request));
  if (located.urls_size() == 1) return located.urls(0);
  return absl::DataLossError(absl::StrCat(NameOfObject(object), ": no URL came for it"));
}

absl::StatusOr<std::string> DirectObjects::ReadUrl(const StoredObject& object, bool anew) {
  if (!anew) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = read_urls_.find(object.name);
    if (found != read_urls_.end()) return found->second;
  }
  ASSIGN_OR_RETURN(std::string url, UrlOf(object, v1::OBJECT_USE_READ));
  std::lock_guard<std::mutex> lock(mutex_);
  if (read_urls_.size() >= kMostReadUrls) read_urls_.clear();
  return read_urls_[object.name] = std::move(url);
}

absl::Status DirectObjects::Read(const StoredObject& object, int64_t offset,
                                 std::span<std::byte> target) {
  Retry retry(&transfer_, give_up_seconds_);
  bool anew = false, renewed = false;
  while (!target.empty()) {
    ASSIGN_OR_RETURN(const std::string url, ReadUrl(object, std::exchange(anew, false)));
    const auto piece = target.first(std::min(target.size(), kReadPieceBytes));
    const std::string range =
        absl::StrCat("bytes=", offset, "-", offset + static_cast<int64_t>(piece.size()) - 1);
    size_t received = 0;
    const absl::StatusOr<HttpAnswer> answer = transfer_.Do(
        {.method = "GET", .url = url, .headers = {{"Range", range}}, .target = piece}, &received);
    if (answer.ok() && answer->status == 200 && offset > 0) return Refusal(object, *answer);
    offset += static_cast<int64_t>(received);
    target = target.subspan(received);
    if (received > 0) {
      retry.Moved();
      renewed = false;
    }
    if (received == piece.size() && answer.ok()) continue;
    absl::Status error = answer.status();
    if (answer.ok()) {
      error = Refusal(object, *answer);
      if (HasExpired(*answer) && !std::exchange(renewed, true)) {
        anew = true;
        continue;
      }
      if (answer->ok() || !IsPassing(*answer)) {
        if (answer->status != 416 && !answer->ok()) return error;
        return absl::DataLossError(absl::StrCat(NameOfObject(object), ": ended at byte ", offset,
                                                ", ", target.size(), " more were asked for"));
      }
    } else if (!absl::IsUnavailable(error)) {
      return error;
    }
    RETURN_IF_ERROR(Annotate(retry.After(error), NameOfObject(object)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> DirectObjects::Put(
    const StoredObject& object, std::span<const std::byte> bytes,
    const std::function<absl::StatusOr<std::string>()>& next_url) {
  Retry retry(&transfer_, give_up_seconds_);
  bool renewed = false;
  const std::string md5 = ContentMd5(bytes);
  ASSIGN_OR_RETURN(std::string url, next_url());
  while (true) {
    HttpCall call{.method = "PUT", .url = url, .body = bytes};
    if (!md5.empty()) call.headers.emplace_back("Content-MD5", md5);
    const absl::StatusOr<HttpAnswer> answer = transfer_.Do(call);
    absl::Status error = answer.status();
    if (answer.ok()) {
      if (answer->ok()) return answer->Header("etag");
      error = Refusal(object, *answer);
      if (HasExpired(*answer) && !std::exchange(renewed, true)) {
        ASSIGN_OR_RETURN(url, next_url());
        continue;
      }
      // The server compares Content-MD5: bytes that were changed on the way are sent again.
      if (!IsPassing(*answer) && WordsOf(*answer).find("BadDigest") == std::string::npos) {
        return error;
      }
    } else if (!absl::IsUnavailable(error)) {
      return error;
    }
    RETURN_IF_ERROR(Annotate(retry.After(error), NameOfObject(object)));
  }
}

absl::Status DirectObjects::LocateParts(const StoredObject& object, Upload& upload) {
  v1::LocateObjectRequest request;
  request.set_use(v1::OBJECT_USE_WRITE_PARTS);
  request.set_upload_id(upload.id);
  request.set_first_part(static_cast<int32_t>(upload.etags.size()) + 1);
  request.set_parts(kPartUrls);
  ASSIGN_OR_RETURN(const v1::LocateObjectResponse located, calls_.locate(object, request));
  if (located.urls_size() == 0 || located.upload_id().empty()) {
    return absl::DataLossError(absl::StrCat(NameOfObject(object), ": no URL came for its parts"));
  }
  upload.id = located.upload_id();
  upload.urls.assign(located.urls().rbegin(), located.urls().rend());
  return absl::OkStatus();
}

absl::Status DirectObjects::AppendPart(const StoredObject& object, Upload& upload,
                                       std::span<const std::byte> bytes) {
  bool first = true;
  const auto next_url = [&]() -> absl::StatusOr<std::string> {
    // The URL at hand has expired: so have those behind it.
    if (!std::exchange(first, false) || upload.urls.empty()) {
      RETURN_IF_ERROR(LocateParts(object, upload));
    }
    return upload.urls.back();
  };
  ASSIGN_OR_RETURN(std::string etag, Put(object, bytes, next_url));
  upload.urls.pop_back();
  upload.etags.push_back(std::move(etag));
  upload.bytes += static_cast<int64_t>(bytes.size());
  return absl::OkStatus();
}

absl::Status DirectObjects::Complete(const StoredObject& object, const Upload& upload) {
  v1::CompleteObjectRequest request;
  request.set_upload_id(upload.id);
  for (const std::string& etag : upload.etags) request.add_etags(etag);
  request.set_bytes(upload.bytes);
  return calls_.complete(object, request);
}

absl::Status DirectObjects::Append(const StoredObject& object, int64_t offset,
                                   std::span<const std::byte> bytes, bool finish) {
  if (offset == 0 && finish) {
    return Put(object, bytes, [&] { return UrlOf(object, v1::OBJECT_USE_WRITE); }).status();
  }
  Upload upload;
  if (offset > 0) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = uploads_.find(object.name);
    if (found == uploads_.end() || found->second.bytes != offset) {
      return absl::DataLossError(
          absl::StrCat(NameOfObject(object), ": no upload of it stands at ", offset, " bytes"));
    }
    upload = std::move(found->second);
    uploads_.erase(found);  // unless it goes on, below
  }
  if (!bytes.empty()) RETURN_IF_ERROR(AppendPart(object, upload, bytes));
  if (finish) return Complete(object, upload);
  std::lock_guard<std::mutex> lock(mutex_);
  uploads_[object.name] = std::move(upload);
  return absl::OkStatus();
}

}  // namespace stagecoach
