#include "services/common/store/store_client.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/threads/progress.h"
#include "services/common/grpc/grpc_status.h"
#include "services/common/grpc/message_checksum.h"
#include "services/common/grpc/own_error.h"
#include "services/common/store/store_names.h"
#include "services/common/store/store_parts.h"

namespace stagecoach {
namespace {

constexpr size_t kMostDirect = 4096;  // asked again beyond
constexpr double kFirstPause = 0.05, kLongestPause = 2;
// Below the longest that the server takes, for the clock goes on on the way.
constexpr double kMostCallSeconds = kMostStoreCallSeconds - 10;
// The slowest disk that completing an object waits for, as coordinator/job/job_checkpoints.cc does.
constexpr double kSlowDiskBytesPerSecond = 20e6;

// Of a connection, or of a moment: another try may do.
bool IsPassing(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsAborted(status) || absl::IsCancelled(status) || absl::IsOutOfRange(status);
}

}  // namespace

// How long to go on: the time since something moved, and the pause before the next try.
class StoreClient::Tries {
 public:
  // more_seconds: of patience, where the coordinator works without a byte moving.
  Tries(StoreClient& client, const StoredObject& object, double more_seconds = 0)
      : client_(client),
        object_(object),
        patience_(client.options_.give_up_seconds + more_seconds),
        moved_at_(Now()) {}

  void Moved() {
    moved_at_ = Now();
    pause_ = kFirstPause;
  }
  // OK: try again. Otherwise what the caller is told.
  absl::Status After(const absl::Status& error, int64_t offset) {
    if (!IsPassing(error)) return error;
    if (Now() - moved_at_ >= patience_) {
      return absl::UnavailableError(absl::StrCat(
          "store object ", object_.name, ": at byte ", offset, " nothing has moved for ", patience_,
          " s: ", absl::StatusCodeToString(error.code()), ": ", error.message()));
    }
    if (client_.WaitClosed(std::exchange(pause_, std::min(2 * pause_, kLongestPause)))) {
      return absl::CancelledError(
          absl::StrCat("store object ", object_.name, ": this process is shutting down"));
    }
    return absl::OkStatus();
  }

 private:
  double Now() const { return client_.options_.clock->MonotonicSeconds(); }

  StoreClient& client_;
  const StoredObject& object_;
  const double patience_;
  double moved_at_;
  double pause_ = kFirstPause;
};

StoreClient::StoreClient(Options options)
    : options_(std::move(options)),
      direct_objects_({.locate =
                           [this](const StoredObject& object, v1::LocateObjectRequest request) {
                             return Locate(object, std::move(request));
                           },
                       .complete =
                           [this](const StoredObject& object, v1::CompleteObjectRequest request) {
                             return Complete(object, std::move(request));
                           }},
                      options_.give_up_seconds, options_.transfer, options_.clock) {}

void StoreClient::Shutdown() {
  direct_objects_.Shutdown();
  std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  for (grpc::ClientContext* context : under_way_) context->TryCancel();
  changed_.notify_all();
}

bool StoreClient::WaitClosed(double seconds) {
  if (options_.transfer != nullptr) return options_.transfer->WaitClosed(seconds);
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                           [this] { return closed_; });
}

std::shared_ptr<StoreClient::Stub> StoreClient::StubNow() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (stub_ == nullptr) {
    if (options_.stub) {
      stub_ = options_.stub();
    } else {
      stub_ = v1::StoreService::NewStub(options_.dial());
    }
  }
  return stub_;
}

void StoreClient::Forget(const std::shared_ptr<Stub>& stub) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (stub_ != stub) return;
  stub_ = nullptr;
  direct_.clear();
}

template <typename Call>
absl::Status StoreClient::Once(Call call, double more_seconds) {
  const std::shared_ptr<Stub> stub = StubNow();
  grpc::ClientContext context;
  const double seconds = std::min(options_.call_seconds + more_seconds, kMostCallSeconds);
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::microseconds(static_cast<int64_t>(seconds * 1e6)));
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return absl::CancelledError("this process is shutting down");
    under_way_.insert(&context);
  }
  const grpc::Status answer = call(*stub, &context);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    under_way_.erase(&context);
  }
  absl::Status status = FromMarkingServer(answer, context);
  // The connection's certificate may have been exchanged, or its peer be another process now.
  if (absl::IsUnavailable(status) && !IsOwnError(context)) Forget(stub);
  return status;
}

template <typename Response, typename Call>
absl::Status StoreClient::Unary(const StoredObject& object, Response* response, Call call) {
  Tries tries(*this, object);
  while (true) {
    absl::Status status = Once(call);
    if (status.ok()) status = CheckChecksum(response);
    if (status.ok()) return status;
    RETURN_IF_ERROR(tries.After(status, 0));
  }
}

absl::StatusOr<StoreClient::Size> StoreClient::Find(const StoredObject& object) {
  v1::FindObjectRequest request;
  request.set_name(object.name);
  request.set_grant(object.grant);
  SetChecksum(&request);
  v1::FindObjectResponse response;
  RETURN_IF_ERROR(Unary(object, &response, [&](Stub& stub, grpc::ClientContext* context) {
    return stub.FindObject(context, request, &response);
  }));
  if (!response.upload_id().empty()) direct_objects_.GoOn(object, response);
  return Size{response.committed_size(),
              response.complete(),
              {response.uploaded().begin(), response.uploaded().end()}};
}

absl::Status StoreClient::Remove(const StoredObject& object) {
  v1::RemoveObjectRequest request;
  request.set_name(object.name);
  request.set_grant(object.grant);
  SetChecksum(&request);
  v1::RemoveObjectResponse response;
  return Unary(object, &response, [&](Stub& stub, grpc::ClientContext* context) {
    return stub.RemoveObject(context, request, &response);
  });
}

absl::StatusOr<v1::LocateObjectResponse> StoreClient::Locate(const StoredObject& object,
                                                             v1::LocateObjectRequest request) {
  request.set_name(object.name);
  request.set_grant(object.grant);
  SetChecksum(&request);
  v1::LocateObjectResponse response;
  RETURN_IF_ERROR(Unary(object, &response, [&](Stub& stub, grpc::ClientContext* context) {
    const grpc::Status status = stub.LocateObject(context, request, &response);
    if (status.error_code() != grpc::StatusCode::UNIMPLEMENTED) return status;
    // Also of a coordinator of an older version. gRPC makes that code itself, without a mark.
    response.Clear();
    SetChecksum(&response);
    return grpc::Status::OK;
  }));
  return response;
}

absl::Status StoreClient::Complete(const StoredObject& object, v1::CompleteObjectRequest request) {
  request.set_name(object.name);
  request.set_grant(object.grant);
  SetChecksum(&request);
  v1::CompleteObjectResponse response;
  return Unary(object, &response, [&](Stub& stub, grpc::ClientContext* context) {
    return stub.CompleteObject(context, request, &response);
  });
}

absl::StatusOr<bool> StoreClient::IsDirect(const StoredObject& object) {
  const bool may_be = object.name.starts_with(absl::StrCat(kCheckpointsArea, "/")) ||
                      object.name.starts_with("data/");
  if (!may_be) return false;  // exports and records are on the coordinator's disk
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = direct_.find(object.name);
    if (found != direct_.end()) return found->second;
  }
  v1::LocateObjectRequest request;
  request.set_use(v1::OBJECT_USE_READ);
  ASSIGN_OR_RETURN(const v1::LocateObjectResponse located, Locate(object, request));
  const bool direct = located.urls_size() == 1;
  if (direct) direct_objects_.NotePlace(object, located);  // who asks reads it next, as a rule
  std::lock_guard<std::mutex> lock(mutex_);
  if (direct_.size() >= kMostDirect) direct_.clear();
  return direct_[object.name] = direct;
}

absl::Status StoreClient::Read(const StoredObject& object, int64_t offset,
                               std::span<std::byte> target) {
  ASSIGN_OR_RETURN(const bool direct, IsDirect(object));
  if (direct) return direct_objects_.Read(object, offset, target);
  v1::ReadObjectRequest request;
  request.set_name(object.name);
  request.set_grant(object.grant);
  Tries tries(*this, object);
  while (!target.empty()) {
    request.set_offset(offset);
    request.set_bytes(static_cast<int64_t>(target.size()));
    SetChecksum(&request);
    absl::Status damaged;
    absl::Status status = Once([&](Stub& stub, grpc::ClientContext* context) {
      const auto stream = stub.ReadObject(context, request);
      v1::ReadObjectResponse part;
      while (damaged.ok() && stream->Read(&part)) {
        damaged = CheckCrc(part);
        if (!damaged.ok() || part.data().size() > target.size()) {
          context->TryCancel();
          break;
        }
        std::memcpy(target.data(), part.data().data(), part.data().size());
        target = target.subspan(part.data().size());
        offset += static_cast<int64_t>(part.data().size());
        tries.Moved();
        TickProgress();
      }
      return stream->Finish();
    });
    if (target.empty()) return absl::OkStatus();
    if (status.ok()) {
      return absl::DataLossError(absl::StrCat("store object ", object.name, ": ended at byte ",
                                              offset, ", ", target.size(), " more were asked for"));
    }
    // Of a range that is not in the object: no matter of time.
    if (absl::IsOutOfRange(status)) return absl::DataLossError(status.message());
    if (!damaged.ok()) status = damaged;
    RETURN_IF_ERROR(tries.After(status, offset));
  }
  return absl::OkStatus();
}

absl::Status StoreClient::Append(const StoredObject& object, int64_t offset,
                                 std::span<const std::byte> bytes, bool finish) {
  ASSIGN_OR_RETURN(const bool direct, IsDirect(object));
  if (direct) return direct_objects_.Append(object, offset, bytes, finish);
  const int64_t end = offset + static_cast<int64_t>(bytes.size());
  const double sync_seconds = finish ? static_cast<double>(end) / kSlowDiskBytesPerSecond : 0;
  Tries tries(*this, object, sync_seconds);
  int64_t next = offset;
  while (true) {
    v1::WriteObjectResponse response;
    const absl::Status status = Once(
        [&](Stub& stub, grpc::ClientContext* context) {
          const auto stream = stub.WriteObject(context, &response);
          v1::WriteObjectRequest part;
          part.set_name(object.name);
          part.set_grant(object.grant);
          for (int64_t at = next;;) {
            const auto rest = bytes.subspan(static_cast<size_t>(at - offset));
            const auto now = rest.first(std::min(rest.size(), kStorePartBytes));
            part.set_write_offset(at);
            part.set_data(now.data(), now.size());
            at += static_cast<int64_t>(now.size());
            part.set_finish_write(finish && at == end);
            part.set_crc32c(CrcOf(part));
            if (!stream->Write(part)) break;  // Finish tells why
            TickProgress();
            if (at == end) break;
            part.clear_name();
            part.clear_grant();
          }
          stream->WritesDone();
          return stream->Finish();
        },
        sync_seconds);
    if (status.ok() && CheckChecksum(&response).ok() && response.committed_size() == end) {
      return absl::OkStatus();
    }
    const absl::Status error = status.ok()
                                   ? absl::UnavailableError(absl::StrCat("the call ended at byte ",
                                                                         response.committed_size()))
                                   : status;
    RETURN_IF_ERROR(tries.After(error, next));
    absl::StatusOr<Size> found = Find(object);
    if (absl::IsNotFound(found.status())) found = Size{};
    RETURN_IF_ERROR(found.status());
    if (found->committed < offset || found->committed > end) {
      return absl::DataLossError(
          absl::StrCat("store object ", object.name, " has ", found->committed,
                       " bytes, and its writer stands between ", offset, " and ", end,
                       ": somebody else has written or removed it"));
    }
    if (found->committed > next) tries.Moved();
    next = found->committed;
  }
}

}  // namespace stagecoach
