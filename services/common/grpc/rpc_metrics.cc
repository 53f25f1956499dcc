#include "services/common/grpc/rpc_metrics.h"

#include <google/protobuf/descriptor.h>
#include <grpcpp/support/server_interceptor.h>

#include <cstring>

#include "absl/status/status.h"
#include "base/threads/clock.h"

namespace stagecoach {
namespace {

constexpr char kLinkPrefix[] = "/stagecoach.v1.LinkService/";

class CountingInterceptor final : public grpc::experimental::Interceptor {
 public:
  CountingInterceptor(RpcMetrics* metrics, const char* full_method)
      : metrics_(metrics),
        full_method_(full_method),
        start_(SystemClock::Get()->MonotonicSeconds()) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    using Point = grpc::experimental::InterceptionHookPoints;
    if (methods->QueryInterceptionHookPoint(Point::PRE_SEND_STATUS)) {
      const size_t slash = full_method_.find('/', 1);
      metrics_->Handled(full_method_.substr(1, slash - 1), full_method_.substr(slash + 1),
                        methods->GetSendStatus().error_code(),
                        SystemClock::Get()->MonotonicSeconds() - start_);
    }
    methods->Proceed();
  }

 private:
  RpcMetrics* const metrics_;
  const std::string full_method_;  // "/package.Service/Method"
  const double start_;
};

class CountingFactory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit CountingFactory(RpcMetrics* metrics) : metrics_(metrics) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    if (std::strncmp(info->method(), kLinkPrefix, sizeof(kLinkPrefix) - 1) == 0) return nullptr;
    if (std::strchr(info->method() + 1, '/') == nullptr) return nullptr;
    return new CountingInterceptor(metrics_, info->method());
  }

 private:
  RpcMetrics* const metrics_;
};

}  // namespace

RpcMetrics::RpcMetrics(const std::vector<std::string>& services) {
  for (const std::string& name : services) {
    const auto* service =
        google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(name);
    if (service == nullptr) continue;
    for (int i = 0; i < service->method_count(); ++i) {
      Entry& entry = methods_[{name, service->method(i)->name()}];
      entry.handled[0] = 0;
      entry.seconds = std::make_unique<Histogram>(Histogram::RpcBounds());
    }
  }
}

void RpcMetrics::Handled(const std::string& service, const std::string& method, int grpc_code,
                         double seconds) {
  std::lock_guard<std::mutex> lock(mutex_);
  Entry& entry = methods_[{service, method}];
  if (entry.seconds == nullptr) entry.seconds = std::make_unique<Histogram>(Histogram::RpcBounds());
  ++entry.handled[grpc_code];
  entry.seconds->Observe(seconds);
}

void RpcMetrics::Refused(const std::string& service, const std::string& method,
                         const std::string& role) {
  std::lock_guard<std::mutex> lock(mutex_);
  ++refused_[{{service, method}, role}];
}

void RpcMetrics::Write(MetricWriter& writer) const {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [method, entry] : methods_) {
    for (const auto& [code, count] : entry.handled) {
      const std::string code_name = absl::StatusCodeToString(static_cast<absl::StatusCode>(code));
      writer.Add(metric::kRpcHandled, {method.first, method.second, code_name},
                 static_cast<double>(count));
    }
    writer.Add(metric::kRpcSeconds, {method.first, method.second}, entry.seconds->snapshot());
  }
  for (const auto& [key, count] : refused_) {
    const auto& [method, role] = key;
    writer.Add(metric::kRpcRefused, {method.first, method.second, role},
               static_cast<double>(count));
  }
}

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>
RpcMetrics::MakeInterceptorFactory() {
  return std::make_unique<CountingFactory>(this);
}

}  // namespace stagecoach
