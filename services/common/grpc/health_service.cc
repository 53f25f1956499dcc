#include "services/common/grpc/health_service.h"

#include <chrono>
#include <optional>

#include "absl/strings/str_cat.h"

namespace stagecoach {
namespace {

// A watcher that went away is noticed this much later.
constexpr std::chrono::seconds kLookAgain(1);

}  // namespace

void HealthService::Set(const std::string& service, bool serving) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    serving_[service] = serving && !shut_down_;
  }
  changed_.notify_all();
}

void HealthService::Shutdown() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    shut_down_ = true;
    for (auto& [service, serving] : serving_) serving = false;
  }
  changed_.notify_all();
}

HealthService::Status::ServingStatus HealthService::FindLocked(const std::string& service) const {
  const auto found = serving_.find(service);
  if (found == serving_.end()) return Status::SERVICE_UNKNOWN;
  return found->second ? Status::SERVING : Status::NOT_SERVING;
}

grpc::Status HealthService::Check(grpc::ServerContext*,
                                  const grpc::health::v1::HealthCheckRequest* request,
                                  grpc::health::v1::HealthCheckResponse* response) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto status = FindLocked(request->service());
  if (status == Status::SERVICE_UNKNOWN) {
    return {grpc::StatusCode::NOT_FOUND,
            absl::StrCat("service \"", request->service(), "\": unknown")};
  }
  response->set_status(status);
  return grpc::Status::OK;
}

grpc::Status HealthService::Watch(
    grpc::ServerContext* context, const grpc::health::v1::HealthCheckRequest* request,
    grpc::ServerWriter<grpc::health::v1::HealthCheckResponse>* writer) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (watchers_ >= kMaxWatchers) {
    return {grpc::StatusCode::RESOURCE_EXHAUSTED,
            absl::StrCat(kMaxWatchers, " others watch already; use Check")};
  }
  ++watchers_;
  std::optional<Status::ServingStatus> told;
  while (!shut_down_ && !context->IsCancelled()) {
    const auto status = FindLocked(request->service());
    if (told == status) {
      changed_.wait_for(lock, kLookAgain);
      continue;
    }
    told = status;
    lock.unlock();
    Status response;
    response.set_status(status);
    const bool written = writer->Write(response);
    lock.lock();
    if (!written) break;
  }
  --watchers_;
  return {grpc::StatusCode::UNAVAILABLE, "the server shuts down"};
}

}  // namespace stagecoach
