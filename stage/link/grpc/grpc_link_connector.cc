#include "stage/link/grpc/grpc_link_connector.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/threads/thread.h"
#include "stage/link/grpc/channel_arguments.h"
#include "stage/link/grpc/client_stream.h"
#include "stage/link/grpc/newest_incarnations.h"
#include "stage/link/grpc/server_stream.h"
#include "stage/link/grpc/waiting_streams.h"

namespace stagecoach {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

std::shared_ptr<grpc::Channel> MakeDataChannel(const GrpcLinkConnector::Options& options,
                                               const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, options.keepalive_time_ms);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, options.keepalive_timeout_ms);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  SetCommonArguments(&arguments);
  // Every generation gets a connection of its own, without another one's backoff.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(static_cast<int>(options.link.chunk_bytes) +
                                     kLinkMessageSlackBytes);
  const auto credentials =
      options.credentials != nullptr ? options.credentials : grpc::InsecureChannelCredentials();
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

}  // namespace

class GrpcLinkConnector::Impl final : public ServerStream::Waiting,
                                      public std::enable_shared_from_this<Impl> {
 public:
  explicit Impl(const Options& options)
      : options_(options), thread_("link-keeper", [this] { Keep(); }) {}

  grpc::Service* service() {
    // For reflection: frames are coded by hand, so nothing else links their description.
    v1::ExchangeRequest::descriptor();
    return &service_;
  }

  void Serve(RpcLoop* loop) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      CHECK(loop_ == nullptr) << "a connector is served once, before it dials";
      loop_ = loop;
    }
    ServerStream::Listen(&service_, loop, shared_from_this());
  }

  std::unique_ptr<Link> Dial(const std::string& address, const BoundaryId& boundary,
                             Allocator& allocator, int64_t most_message_bytes) {
    auto core = MakeCore(boundary, address, true, allocator, most_message_bytes);
    if (!AddCore(core)) {
      core->Close(absl::CancelledError("this stage is shutting down"));
      return LinkOver(core);
    }
    std::make_shared<ClientStream>(DiallingLoop(), MakeDataChannel(options_, address), core,
                                   [this] { CountGone(); })
        ->Start();
    return LinkOver(core);
  }

  std::unique_ptr<Link> Accept(const BoundaryId& boundary, const std::string& upstream_name,
                               Allocator& allocator, int64_t most_message_bytes) {
    auto core = MakeCore(boundary, upstream_name.empty() ? "the stage before" : upstream_name, false,
                         allocator, most_message_bytes);
    std::optional<WaitingStreams::Early> early;
    std::vector<WaitingStreams::Refused> refused;
    bool shut_down = false;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      shut_down = shut_down_;
      newest_.Accept(boundary.job, {boundary.term, boundary.generation});
      for (WaitingStreams::Early& each : waiting_.TakeEarly(boundary)) {
        absl::Status status = CheckNeighbour(*each.stream, boundary, upstream_name);
        if (status.ok() && early.has_value()) status = ServedByAnother(boundary);
        if (status.ok()) {
          early = std::move(each);
        } else {
          refused.push_back({std::move(each.stream), std::move(status)});
        }
      }
      if (!early.has_value()) accepting_[boundary] = {core, upstream_name};
    }
    for (const auto& [stream, reason] : refused) stream->Refuse(reason);
    if (shut_down || !AddCore(core)) {
      core->Close(absl::CancelledError("this stage is shutting down"));
    }
    if (early.has_value()) early->stream->Bind(core, early->hello);
    return LinkOver(core);
  }

  // ServerStream::Waiting
  void OnOpened(std::shared_ptr<ServerStream> stream) override {
    absl::Status refused = absl::UnavailableError("this stage is shutting down");
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!shut_down_) refused = waiting_.AddSilent(stream, In(options_.hello_deadline_seconds));
    }
    if (!refused.ok()) return stream->Refuse(refused);
    changed_.notify_all();
  }

  void OnHello(std::shared_ptr<ServerStream> stream, const LinkHello& hello) override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!waiting_.TakeSilent(stream.get())) return;  // it came too late and is refused
    }
    std::shared_ptr<LinkCore> core;
    const absl::Status refused = Match(stream, hello, &core);
    if (!refused.ok()) {
      stream->Refuse(refused);
    } else if (core != nullptr) {
      stream->Bind(std::move(core), hello);
    }
  }

  void OnEndedWhileWaiting(ServerStream* stream) override {
    std::lock_guard<std::mutex> lock(mutex_);
    waiting_.Forget(stream);
  }

  void Shutdown() {
    std::vector<std::shared_ptr<LinkCore>> cores;
    std::vector<std::shared_ptr<ServerStream>> waiting;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (shut_down_) return;
      shut_down_ = true;
      for (Watched& watched : watched_) {
        if (auto core = watched.core.lock(); core != nullptr) cores.push_back(std::move(core));
      }
      waiting = waiting_.TakeAll();
      accepting_.clear();
    }
    const absl::Status reason = absl::UnavailableError("this stage is shutting down");
    for (const auto& core : cores) core->Close(reason);
    for (const auto& stream : waiting) stream->Refuse(reason);
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [this] { return dialled_ == 0; });
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.Join();
    if (own_loop_ != nullptr) own_loop_->Stop();
  }

  LinkTotals upstream_totals, downstream_totals;

 private:
  struct Watched {
    std::weak_ptr<LinkCore> core;
    SteadyTime deadline;
    bool checked = false;
  };
  struct Accepting {
    std::weak_ptr<LinkCore> core;
    std::string upstream_name;
  };
  using Incarnation = NewestIncarnations::Incarnation;

  static absl::Status ServedByAnother(const BoundaryId& boundary) {
    return absl::AlreadyExistsError(
        absl::StrCat(boundary.ToString(), ": another stream serves this boundary"));
  }

  // That it comes from the stage that the job has in front of this one.
  absl::Status CheckNeighbour(const ServerStream& stream, const BoundaryId& boundary,
                              const std::string& upstream_name) const {
    if (options_.may_be == nullptr || upstream_name.empty()) return absl::OkStatus();
    const absl::Status may = options_.may_be(*stream.PeerCertificate(), upstream_name);
    if (may.ok()) return may;
    // A neighbour whose certificate is another's now cannot be reached, and that is no fault of the
    // job: PERMISSION_DENIED would be one.
    return absl::UnavailableError(absl::StrCat(
        boundary.ToString(), ": the job has stage ", upstream_name, " in front of this one; ",
        may.message(), "; give each stage a certificate of its own name"));
  }

  RpcLoop* DiallingLoop() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (loop_ == nullptr) {
      own_loop_ = std::make_unique<RpcLoop>();
      loop_ = own_loop_.get();
    }
    return loop_;
  }

  static SteadyTime In(double seconds) {
    return std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                                  std::chrono::duration<double>(seconds));
  }
  SteadyTime Deadline() const { return In(options_.connect_deadline_seconds); }

  std::shared_ptr<LinkCore> MakeCore(const BoundaryId& boundary, const std::string& peer,
                                     bool upstream_end, Allocator& allocator,
                                     int64_t most_message_bytes) {
    LinkCore::Options core;
    core.most_message_bytes = most_message_bytes;
    core.boundary = boundary;
    core.peer = peer;
    core.upstream_end = upstream_end;
    core.link = options_.link;
    core.allocator = &allocator;
    core.totals = upstream_end ? &downstream_totals : &upstream_totals;
    core.on_transfer = options_.on_transfer;
    core.progress = options_.progress;
    return std::make_shared<LinkCore>(std::move(core));
  }

  // False once shut down.
  bool AddCore(const std::shared_ptr<LinkCore>& core) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (shut_down_) return false;
      if (core->options().upstream_end) ++dialled_;
      watched_.push_back({core, Deadline()});
    }
    changed_.notify_all();
    return true;
  }

  // Why the stream is refused, or its core; neither: it waits for Accept.
  absl::Status Match(const std::shared_ptr<ServerStream>& stream, const LinkHello& hello,
                     std::shared_ptr<LinkCore>* core) {
    const BoundaryId& boundary = hello.boundary;
    if (hello.protocol != kLinkProtocol) {
      return absl::FailedPreconditionError(absl::StrCat(
          "peer speaks link protocol ", hello.protocol, ", this program ", kLinkProtocol));
    }
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (shut_down_) return absl::UnavailableError("this stage is shutting down");
      const Incarnation incarnation{boundary.term, boundary.generation};
      const std::optional<Incarnation> newest = newest_.Of(boundary.job);
      if (newest.has_value() && incarnation < *newest) {
        return absl::AbortedError(absl::StrCat(boundary.ToString(),
                                               ": this stage has accepted term ", newest->first,
                                               " generation ", newest->second));
      }
      if (const auto found = accepting_.find(boundary); found != accepting_.end()) {
        RETURN_IF_ERROR(CheckNeighbour(*stream, boundary, found->second.upstream_name));
        *core = found->second.core.lock();
        accepting_.erase(found);
        if (*core != nullptr) return absl::OkStatus();
      } else if (newest == incarnation) {
        return ServedByAnother(boundary);
      }
      RETURN_IF_ERROR(waiting_.AddEarly(stream, hello, Deadline()));
    }
    changed_.notify_all();
    return absl::OkStatus();
  }

  // Under the mutex: who waits for the last one may destroy this object at once.
  void CountGone() {
    std::lock_guard<std::mutex> lock(mutex_);
    --dialled_;
    changed_.notify_all();
  }

  // The keeper's thread: closes what is late.
  void Keep() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stopping_) {
      const SteadyTime now = std::chrono::steady_clock::now();
      std::vector<std::shared_ptr<LinkCore>> late = TakeLateLocked(now);
      std::vector<WaitingStreams::Refused> refused = waiting_.TakeLate(
          now, options_.connect_deadline_seconds, options_.hello_deadline_seconds);
      lock.unlock();
      for (const auto& core : late) CloseLate(*core);
      for (const auto& [stream, reason] : refused) stream->Refuse(reason);
      late.clear();
      refused.clear();
      lock.lock();
      if (!stopping_) changed_.wait_until(lock, NextLocked());
    }
  }

  void CloseLate(LinkCore& core) {
    core.Close(absl::DeadlineExceededError(
        absl::StrCat("no connection within ", options_.connect_deadline_seconds, " s")));
  }

  std::vector<std::shared_ptr<LinkCore>> TakeLateLocked(SteadyTime now) {
    std::vector<std::shared_ptr<LinkCore>> late;
    std::erase_if(watched_, [](const Watched& watched) { return watched.core.expired(); });
    for (Watched& watched : watched_) {
      if (watched.checked || watched.deadline > now) continue;
      watched.checked = true;
      auto core = watched.core.lock();
      if (core != nullptr && !core->connected()) late.push_back(std::move(core));
    }
    std::erase_if(accepting_, [](const auto& entry) { return entry.second.core.expired(); });
    return late;
  }

  SteadyTime NextLocked() const {
    SteadyTime next = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (const Watched& watched : watched_) {
      if (!watched.checked) next = std::min(next, watched.deadline);
    }
    return waiting_.Next(next);
  }

  const Options options_;
  ServerStream::Service service_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool shut_down_ = false, stopping_ = false;
  RpcLoop* loop_ = nullptr;
  std::unique_ptr<RpcLoop> own_loop_;          // where nothing is served
  int dialled_ = 0;                            // client streams that are not over
  NewestIncarnations newest_;                  // accepted
  std::map<BoundaryId, Accepting> accepting_;  // accepted, no stream yet
  WaitingStreams waiting_;                     // streams of no link yet
  std::vector<Watched> watched_;
  Thread thread_;
};

GrpcLinkConnector::GrpcLinkConnector(const Options& options)
    : impl_(std::make_shared<Impl>(options)) {}

GrpcLinkConnector::~GrpcLinkConnector() { impl_->Shutdown(); }

grpc::Service* GrpcLinkConnector::service() { return impl_->service(); }
void GrpcLinkConnector::Serve(RpcLoop* loop) { impl_->Serve(loop); }

std::unique_ptr<Link> GrpcLinkConnector::Dial(const std::string& address,
                                              const BoundaryId& boundary, Allocator& allocator,
                                              int64_t most_message_bytes) {
  return impl_->Dial(address, boundary, allocator, most_message_bytes);
}

std::unique_ptr<Link> GrpcLinkConnector::Accept(const BoundaryId& boundary,
                                                const std::string& upstream_name,
                                                Allocator& allocator, int64_t most_message_bytes) {
  return impl_->Accept(boundary, upstream_name, allocator, most_message_bytes);
}

void GrpcLinkConnector::Shutdown() { impl_->Shutdown(); }

const LinkTotals& GrpcLinkConnector::upstream_totals() const { return impl_->upstream_totals; }
const LinkTotals& GrpcLinkConnector::downstream_totals() const { return impl_->downstream_totals; }

}  // namespace stagecoach
