#include "services/common/store/direct_objects.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "services/common/s3/retry.h"
#include "services/common/s3/s3_client.h"

namespace stagecoach {
namespace {

constexpr size_t kMostReadPlaces = 256;
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

// Whether the answer is not of the object that a job was submitted with. The ETag counts also where
// a server does not know If-Match.
bool IsOfAnother(const std::string& if_match, const HttpAnswer& answer) {
  if (if_match.empty()) return false;
  if (answer.status == 404 || answer.status == 412) return true;
  return answer.ok() && answer.Header("etag") != if_match;
}

absl::Status HasChanged(const std::string& source, const HttpAnswer& answer) {
  return absl::DataLossError(absl::StrCat(
      source, ": ", answer.status == 404 ? "is gone since" : "has changed since",
      " the job was submitted: submit the job again, which takes the objects as they are then"));
}

}  // namespace

absl::StatusOr<v1::LocateObjectResponse> DirectObjects::PlaceOf(const StoredObject& object,
                                                                v1::ObjectUse use) {
  v1::LocateObjectRequest request;
  request.set_use(use);
  ASSIGN_OR_RETURN(v1::LocateObjectResponse located, calls_.locate(object, request));
  if (located.urls_size() == 1) return located;
  return absl::DataLossError(absl::StrCat(NameOfObject(object), ": no URL came for it"));
}

absl::StatusOr<std::string> DirectObjects::UrlOf(const StoredObject& object, v1::ObjectUse use) {
  ASSIGN_OR_RETURN(const v1::LocateObjectResponse located, PlaceOf(object, use));
  return located.urls(0);
}

absl::StatusOr<DirectObjects::ReadPlace> DirectObjects::ReadPlaceOf(const StoredObject& object,
                                                                    bool anew) {
  if (!anew) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = read_places_.find(object.name);
    if (found != read_places_.end()) return found->second;
  }
  ASSIGN_OR_RETURN(const v1::LocateObjectResponse located, PlaceOf(object, v1::OBJECT_USE_READ));
  return NotePlace(object, located);
}

DirectObjects::ReadPlace DirectObjects::NotePlace(const StoredObject& object,
                                                  const v1::LocateObjectResponse& located) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (read_places_.size() >= kMostReadPlaces) read_places_.clear();
  return read_places_[object.name] =
             ReadPlace{located.urls(0), located.if_match(), located.source()};
}

absl::Status DirectObjects::Read(const StoredObject& object, int64_t offset,
                                 std::span<std::byte> target) {
  Retry retry(&transfer_, give_up_seconds_, Retry::kFirstPause, &clock_);
  bool anew = false, renewed = false;
  while (!target.empty()) {
    ASSIGN_OR_RETURN(const ReadPlace place, ReadPlaceOf(object, std::exchange(anew, false)));
    const auto piece = target.first(std::min(target.size(), kReadPieceBytes));
    const std::string range =
        absl::StrCat("bytes=", offset, "-", offset + static_cast<int64_t>(piece.size()) - 1);
    HttpCall call{
        .method = "GET", .url = place.url, .headers = {{"Range", range}}, .target = piece};
    if (!place.if_match.empty()) call.headers.emplace_back("If-Match", place.if_match);
    size_t received = 0;
    const absl::StatusOr<HttpAnswer> answer = transfer_.Do(call, &received);
    if (answer.ok() && IsOfAnother(place.if_match, *answer)) {
      return HasChanged(place.source, *answer);
    }
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
  Retry retry(&transfer_, give_up_seconds_, Retry::kFirstPause, &clock_);
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
  request.set_first_part(static_cast<int32_t>(upload.parts.size()) + 1);
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
  absl::StatusOr<std::string> etag = Put(object, bytes, next_url);
  if (absl::IsNotFound(etag.status())) {
    return absl::DataLossError(
        absl::StrCat("its upload is gone: ", std::string(etag.status().message())));
  }
  RETURN_IF_ERROR(etag.status());
  upload.urls.pop_back();
  v1::UploadedPart& part = upload.parts.emplace_back();
  part.set_bytes(static_cast<int64_t>(bytes.size()));
  part.set_etag(*std::move(etag));
  upload.bytes += part.bytes();
  return absl::OkStatus();
}

absl::Status DirectObjects::Complete(const StoredObject& object, const Upload& upload) {
  v1::CompleteObjectRequest request;
  request.set_upload_id(upload.id);
  for (const v1::UploadedPart& part : upload.parts) request.add_etags(part.etag());
  request.set_bytes(upload.bytes);
  return calls_.complete(object, request);
}

void DirectObjects::GoOn(const StoredObject& object, const v1::FindObjectResponse& found) {
  Upload upload{.id = found.upload_id(),
                .parts = {found.uploaded().begin(), found.uploaded().end()}};
  for (const v1::UploadedPart& part : upload.parts) upload.bytes += part.bytes();
  std::lock_guard<std::mutex> lock(mutex_);
  uploads_[object.name] = std::move(upload);
}

absl::StatusOr<DirectObjects::Upload> DirectObjects::TakeUpload(const StoredObject& object,
                                                                int64_t offset) {
  Upload upload;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = uploads_.find(object.name);
    if (found != uploads_.end()) {
      upload = std::move(found->second);
      uploads_.erase(found);  // unless it goes on, in Append
    }
  }
  while (upload.bytes > offset) {
    upload.bytes -= upload.parts.back().bytes();
    upload.parts.pop_back();
    upload.urls.clear();  // they are of the parts behind
  }
  if (!upload.id.empty() && upload.bytes == offset) return upload;
  return absl::DataLossError(
      absl::StrCat(NameOfObject(object), ": no upload of it stands at ", offset, " bytes"));
}

absl::Status DirectObjects::Append(const StoredObject& object, int64_t offset,
                                   std::span<const std::byte> bytes, bool finish) {
  if (offset == 0 && finish) {
    return Put(object, bytes, [&] { return UrlOf(object, v1::OBJECT_USE_WRITE); }).status();
  }
  Upload upload;
  if (offset > 0) {
    ASSIGN_OR_RETURN(upload, TakeUpload(object, offset));
  }
  if (!bytes.empty()) RETURN_IF_ERROR(AppendPart(object, upload, bytes));
  if (finish) return Complete(object, upload);
  std::lock_guard<std::mutex> lock(mutex_);
  uploads_[object.name] = std::move(upload);
  return absl::OkStatus();
}

}  // namespace stagecoach
