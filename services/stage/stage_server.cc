#include "services/stage/stage_server.h"

#include <sched.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/device_name.h"
#include "base/errors/status.h"
#include "checkpoint/files/file_system.h"
#include "checkpoint/local/keeping_files.h"
#include "checkpoint/local/local_shards.h"
#include "services/common/convert/convert_card.h"
#include "services/common/data_sets/data_cache.h"
#include "services/common/grpc/access/peer_identity.h"
#include "services/common/grpc/grpc_channel.h"
#include "services/common/grpc/grpc_server.h"
#include "services/common/grpc/rpc_metrics.h"
#include "services/common/http/http_server.h"
#include "services/common/http/probe_server.h"
#include "services/common/observe/log.h"
#include "services/common/observe/metric_names.h"
#include "services/common/observe/metrics.h"
#include "services/common/process/dial_address.h"
#include "services/common/process/last_death.h"
#include "services/common/process/process.h"
#include "services/common/tls/tls_check.h"
#include "services/common/tls/tls_expiry.h"
#include "services/common/tls/tls_identity.h"
#include "services/stage/data_root_flags.h"
#include "services/stage/lease.h"
#include "services/stage/nvml.h"
#include "services/stage/snapshots/snapshot_client.h"
#include "services/stage/snapshots/snapshot_service.h"
#include "services/stage/stage_identity.h"
#include "services/stage/stage_metrics.h"
#include "services/stage/stage_service.h"
#include "services/stage/telemetry.h"
#include "stage/backends/cuda/make_cuda_backend.h"
#include "stage/backends/simulated/simulated_backend.h"
#include "stage/data/cache/cache_folder.h"
#include "stage/link/grpc/grpc_link_connector.h"
#include "stage/link/grpc/rpc_loop.h"
#include "stage/runtime/stage_runtime.h"
#include "stage/watch/trace_ring.h"

namespace stagecoach {
namespace {

constexpr char kStageServiceName[] = "stagecoach.v1.StageService";
constexpr char kLinkServiceName[] = "stagecoach.v1.LinkService";
constexpr char kSnapshotServiceName[] = "stagecoach.v1.SnapshotService";

// Cores this process may use, which a container or taskset may have narrowed.
int UsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

bool IsSimulated(const StageFlags& flags) { return absl::StartsWith(flags.device, "simulated"); }

absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(const StageFlags& flags) {
  const BackendOptions options{.threads = flags.threads > 0 ? flags.threads : UsableCores(),
                               .memory_limit_bytes = flags.memory_limit_bytes,
                               .worker_nice = StageRuntime::Options().compute_nice,
                               .matmul_table = flags.matmul_table,
                               .cuda_graphs = flags.cuda_graphs,
                               .say = [](const std::string& line) { spdlog::info("{}", line); }};
  if (!flags.matmul_table.empty() && !IsCudaDevice(flags.device)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--matmul-table=", flags.matmul_table,
                     ": only cards have a choice of matrix algorithms, and --device=", flags.device,
                     " is none; leave the flag out, or give --device=cuda[:N]"));
  }
  if (flags.cuda_graphs && !IsCudaDevice(flags.device)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--cuda-graphs: only cards have graphs of launches, and --device=", flags.device,
        " is none; leave the flag out (and STAGECOACH_CUDA_GRAPHS), or give "
        "--device=cuda[:N]"));
  }
  if (flags.device == "cpu") return MakeCpuBackend(options);
  if (flags.device == "reference") return MakeReferenceBackend(options);
  if (IsSimulated(flags)) {
    ASSIGN_OR_RETURN(const SimulatedDevice device, ParseSimulatedDevice(flags.device));
    return MakeSimulatedBackend(options, device);
  }
  if (IsCudaDevice(flags.device)) {
    ASSIGN_OR_RETURN(const int ordinal, ParseCudaDevice(flags.device));
    return MakeCudaBackend(options, ordinal);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--device=", flags.device, ": want cpu, cuda[:N], reference or simulated[:GFLOP/s[:GB/s]]"));
}

// What a shutdown has for the running step; the rest is for ending what did not end by then.
double DrainSeconds(double exit_timeout_seconds) {
  return std::max(exit_timeout_seconds / 2, exit_timeout_seconds - 5);
}

}  // namespace

struct StageServer::State {
  State(const StageFlags& f, Hooks h)
      : flags(f),
        hooks(std::move(h)),
        rpc_metrics({kStageServiceName, kLinkServiceName, kSnapshotServiceName}) {}

  StageFlags flags;
  const Hooks hooks;
  std::unique_ptr<TlsIdentity> tls_identity;  // null: no TLS
  RpcMetrics rpc_metrics;
  MetricsRegistry metrics;
  TraceRing trace;
  MicroBatchTimes micro_batches;
  Histogram transfer_upstream{Histogram::DoublingBounds()};
  Histogram transfer_downstream{Histogram::DoublingBounds()};
  std::string fingerprint;
  std::optional<CardProfile> card_profile;  // of the device
  HostProfile host_profile;
  std::vector<std::string> without_kernels;  // operations
  std::unique_ptr<StageIdentity> identity;
  std::unique_ptr<LastDeath> last_death;  // null: there is no folder
  std::unique_ptr<NvmlCard> card;         // null: no card, or no NVML
  ProgressCounter progress;
  const double start_seconds = SystemClock::Get()->MonotonicSeconds();
  std::atomic<bool> draining{false};
  std::atomic<bool> unreachable{false};
  mutable std::mutex fault_mutex;  // guards fault
  absl::Status fault;
  std::unique_ptr<StoreClient> data_store;
  std::unique_ptr<DataCache> data_cache;
  std::unique_ptr<DataRoots> data_roots;
  std::unique_ptr<GrpcLinkConnector> connector;
  std::unique_ptr<SnapshotClient> snapshot_client;
  std::unique_ptr<RemoteStoreFiles> store;
  std::unique_ptr<LocalShards> local_shards;    // null: without --keep-local
  std::unique_ptr<KeepingFiles> keeping_files;  // with it
  std::unique_ptr<StageRuntime> runtime;
  std::unique_ptr<StageServiceAdapter> service;
  std::unique_ptr<SnapshotServiceAdapter> snapshot_service;
  std::unique_ptr<RpcLoop> loop;
  std::unique_ptr<GrpcServer> grpc;
  HttpServer http, probes;
  std::unique_ptr<Lease> lease;
  std::atomic<bool> has_lease{false};  // HTTP threads ask before there is one
  std::shared_ptr<grpc::ChannelCredentials> credentials;

  absl::Status StartData();
  absl::Status StartRuntime();
  void OpenCard();
  void KeepFault(const absl::Status& reason);
  absl::Status StartGrpc();
  absl::Status StartHttp();
  absl::Status StartLease();
  v1::Stage Registration() const;
  NeighbourLink Upstream() const;
  NeighbourLink Downstream() const;
  v1::StageTelemetry Telemetry() const;
  void WriteMetrics(MetricWriter& writer) const;
};

StageServer::StageServer(const StageFlags& flags, Hooks hooks)
    : state_(std::make_unique<State>(flags, std::move(hooks))) {}
StageServer::~StageServer() { Shutdown(); }

absl::Status StageServer::fault() const {
  std::lock_guard<std::mutex> lock(state_->fault_mutex);
  return state_->fault;
}

bool StageServer::unreachable() const { return state_->unreachable; }

void StageServer::State::KeepFault(const absl::Status& reason) {
  spdlog::critical("the device is lost to this process: {}", std::string(reason.message()));
  {
    std::lock_guard<std::mutex> lock(fault_mutex);
    fault = reason;
  }
  draining = true;  // not ready any more
  if (hooks.on_fault) hooks.on_fault();
}

absl::Status StageServer::Start() {
  RETURN_IF_ERROR(CheckExposure(state_->flags.server));
  // The coordinator would refuse it as well, but later, and by the name of a field that no operator
  // wrote.
  if (const std::string& advertise = state_->flags.advertise; !advertise.empty()) {
    RETURN_IF_ERROR(CheckPeerAddress("--advertise", advertise));
  }
  ASSIGN_OR_RETURN(state_->tls_identity, TlsIdentity::Load(state_->flags.server.tls));
  state_->credentials = ChannelCredentialsOf(state_->tls_identity.get());
  RETURN_IF_ERROR(state_->StartRuntime());
  RETURN_IF_ERROR(state_->StartGrpc());
  RETURN_IF_ERROR(state_->StartHttp());
  RETURN_IF_ERROR(state_->StartLease());
  state_->grpc->SetServing(true);
  const std::string& port_file = state_->flags.server.port_file;
  if (!port_file.empty()) {
    RETURN_IF_ERROR(
        WritePortFile(port_file, state_->grpc->port(), state_->http.port(), state_->probes.port()));
  }
  return absl::OkStatus();
}

absl::Status StageServer::State::StartData() {
  // Checkpoints have a channel of their own: no data set is in front of them.
  data_store = std::make_unique<StoreClient>(StoreClient::Options{
      .dial = [this] { return MakeControlChannel(flags.coordinator, credentials); }});
  data_cache = std::make_unique<DataCache>(DataCache::Options{
      .folder = [this] { return CacheFolder(*PosixFileSystem(), flags.cache_dir); },
      .bytes = flags.cache_bytes,
      .size = [this](const StoredObject& object) -> absl::StatusOr<int64_t> {
        ASSIGN_OR_RETURN(const StoreClient::Size size, data_store->Find(object));
        if (size.complete) return size.committed;
        return absl::NotFoundError(absl::StrCat("store object ", object.name, " is not complete"));
      },
      .read = [this](
                  const StoredObject& object, int64_t offset,
                  std::span<std::byte> into) { return data_store->Read(object, offset, into); }});
  ASSIGN_OR_RETURN(data_roots, MakeDataRoots(flags, data_cache.get()));
  return absl::OkStatus();
}

absl::Status StageServer::State::StartRuntime() {
  RETURN_IF_ERROR(StartData());
  ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend,
                   hooks.make_backend ? hooks.make_backend() : MakeBackend(flags));
  fingerprint = backend->fingerprint();
  card_profile = backend->Card();
  host_profile = backend->Host();
  without_kernels = backend->WithoutKernels();
  OpenCard();
  StageRuntime::Options options;
  options.progress_timeout_seconds = flags.progress_timeout_seconds;
  options.progress = &progress;
  options.work = WatchedWork();
  options.data_roots = data_roots.get();
  options.weight_files = data_roots.get();
  // A made-up device takes no time from anybody, but must wake up in time.
  if (IsSimulated(flags)) options.compute_nice = 0;
  options.trace = &trace;
  options.on_micro_batch = [this](Phase phase, double seconds) {
    micro_batches.Observe(phase, seconds);
  };
  options.on_fault = [this](const absl::Status& reason) { KeepFault(reason); };
  GrpcLinkConnector::Options link;
  link.link = options.link;
  link.credentials = credentials;
  link.progress = &progress;
  link.may_be = CheckMayBeStage;
  // A neighbour takes its end when it has finished what it computes: the runtime's waits decide.
  link.connect_deadline_seconds = 86400;
  link.on_transfer = [this](const LinkTransfer& transfer) {
    trace.Add(TransferSpan(transfer));
    if (transfer.sent) return;
    // The begin is by the neighbour's clock, which may be ahead of ours.
    const int64_t nanos = transfer.end_unix_nanos - transfer.begin_unix_nanos;
    (transfer.upstream_peer ? transfer_upstream : transfer_downstream)
        .Observe(static_cast<double>(std::max<int64_t>(nanos, 0)) * 1e-9);
  };
  connector = std::make_unique<GrpcLinkConnector>(link);
  snapshot_client = std::make_unique<SnapshotClient>(credentials);
  options.snapshot_peers = snapshot_client.get();
  store = std::make_unique<RemoteStoreFiles>(
      PosixFileSystem(), StoreClient::Options{.dial = [this] {
        return MakeControlChannel(flags.coordinator, credentials);
      }});
  FileSystem* files = store.get();
  if (flags.keep_local > 0) {
    local_shards = std::make_unique<LocalShards>(LocalShards::Options{
        .files = PosixFileSystem(),
        .folder = [this] { return CacheFolder(*PosixFileSystem(), flags.cache_dir); },
        .keep = flags.keep_local});
    keeping_files = std::make_unique<KeepingFiles>(store.get(), local_shards.get());
    files = keeping_files.get();
  }
  options.local_shards = local_shards.get();
  runtime = std::make_unique<StageRuntime>(options, std::move(backend), connector.get(), files,
                                           SystemClock::Get());
  service = std::make_unique<StageServiceAdapter>(
      StageServiceAdapter::Parts{.runtime = runtime.get(),
                                 .store = store.get(),
                                 .data_sets = data_cache.get(),
                                 .trace = &trace,
                                 .logs = ProcessLogRing(),
                                 .clock = SystemClock::Get()});
  snapshot_service = std::make_unique<SnapshotServiceAdapter>(runtime.get());
  return absl::OkStatus();
}

void StageServer::State::OpenCard() {
  if (!IsCudaDevice(flags.device)) return;
  const absl::StatusOr<int> ordinal = ParseCudaDevice(flags.device);
  if (!ordinal.ok()) return;  // a hook's back end, whatever the flag says
  auto opened = NvmlCard::Open(kNvmlLibrary, CudaDeviceAddress(*ordinal), SystemClock::Get());
  if (opened.ok()) {
    card = *std::move(opened);
  } else {
    spdlog::info("no metrics of the card's utilization and power: {}",
                 std::string(opened.status().message()));
  }
}

absl::Status StageServer::State::StartGrpc() {
  GrpcServerOptions options;
  options.listen = flags.server.listen;
  options.tls = flags.server.tls;
  options.identity = tls_identity.get();
  options.connections = flags.server.connections;
  options.on_unreachable = [this] {
    unreachable = true;
    if (hooks.on_fault) hooks.on_fault();
  };
  options.max_receive_bytes = kControlMessageBytes;  // more than a link's chunks
  options.keepalive_time_ms = 1000;
  options.keepalive_timeout_ms = 1000;
  options.max_concurrent_streams = 16;
  options.take_queue = [this](std::unique_ptr<grpc::ServerCompletionQueue> queue) {
    loop = std::make_unique<RpcLoop>(std::move(queue));
  };
  grpc = std::make_unique<GrpcServer>(
      options,
      std::vector<GrpcServer::NamedService>{{kStageServiceName, service->service()},
                                            {kLinkServiceName, connector->service()},
                                            {kSnapshotServiceName, snapshot_service->service()}},
      &rpc_metrics);
  RETURN_IF_ERROR(grpc->Start());
  service->Serve(loop.get());
  connector->Serve(loop.get());
  snapshot_service->Serve(loop.get());
  snapshot_client->Serve(loop.get());
  std::string host;
  int port = 0;
  RETURN_IF_ERROR(ParseAddress("--listen", flags.server.listen, &host, &port));
  if (flags.advertise.empty() && (host == "0.0.0.0" || host == "[::]")) {
    return absl::InvalidArgumentError(
        absl::StrCat("--listen=", flags.server.listen, ": coordinator and neighbours cannot dial ",
                     host, "; say under which name they can by --advertise=host:port"));
  }
  if (flags.advertise.empty()) flags.advertise = absl::StrCat(host, ":", grpc->port());
  if (flags.name.empty()) flags.name = absl::StrCat(HostName(), "-", grpc->port());
  ASSIGN_OR_RETURN(identity, StageIdentity::Make(flags.state_dir, ThisMachine(),
                                                 port == 0 ? "" : flags.server.listen));
  if (identity->holds_folder()) {
    ASSIGN_OR_RETURN(last_death, LastDeath::Open(flags.state_dir));
    if (last_death->death()) {
      spdlog::error("the process of this stage before this one ended by {}",
                    DeathText(*last_death->death()));
    }
  }
  service->set_name(flags.name);
  spdlog::info("stage {} serves gRPC on {}:{} as {}, device {}", flags.name, host, grpc->port(),
               flags.advertise, fingerprint);
  return absl::OkStatus();
}

absl::Status StageServer::State::StartHttp() {
  metrics.AddSource([this](MetricWriter& writer) { WriteMetrics(writer); });
  RETURN_IF_ERROR(
      StartProbes(flags.server,
                  {[this] { return metrics.Render(); }, [this] { return grpc->reachable(); },
                   [this] { return !draining && has_lease && lease->registered(); }},
                  http, probes));
  HttpOptions options;
  options.listen = flags.server.http;
  options.token_file = flags.server.http_token_file;
  return http.Start(options);
}

v1::Stage StageServer::State::Registration() const {
  v1::Stage stage;
  stage.set_name(flags.name);
  stage.set_incarnation(NewIncarnation());
  stage.set_address(flags.advertise);
  stage.set_device(flags.device);
  stage.set_version(STAGECOACH_VERSION);
  stage.set_fingerprint(fingerprint);
  stage.set_memory_limit_bytes(flags.memory_limit_bytes);
  stage.set_identity(identity->text());
  if (card_profile) *stage.mutable_card() = ToProto(*card_profile);
  *stage.mutable_processor() = ToProto(host_profile);
  for (const std::string& operation : without_kernels) stage.add_without_kernels(operation);
  return stage;
}

absl::Status StageServer::State::StartLease() {
  RETURN_IF_ERROR(CheckDialAddress("--coordinator", flags.coordinator));
  lease = std::make_unique<Lease>(Lease::Parts{
      .dial = [this] { return MakeControlChannel(flags.coordinator, credentials); },
      .stage = Registration(),
      .runtime = runtime.get(),
      .telemetry = [this] { return Telemetry(); },
      .last_death = last_death.get(),
      .explain = [address = flags.coordinator, tls = flags.server.tls](
                     const absl::Status& error) { return WithTlsReason(error, address, tls); }});
  has_lease = true;
  return absl::OkStatus();
}

NeighbourLink StageServer::State::Upstream() const {
  return {"upstream", &connector->upstream_totals(), &transfer_upstream};
}

NeighbourLink StageServer::State::Downstream() const {
  return {"downstream", &connector->downstream_totals(), &transfer_downstream};
}

v1::StageTelemetry StageServer::State::Telemetry() const {
  const StageStatus status = runtime->Status();
  v1::StageTelemetry telemetry = ToProto(status);
  if (status.upstream.has_value()) {
    *telemetry.add_links() = ToProto(Upstream(), *status.upstream);
  }
  if (status.downstream.has_value()) {
    *telemetry.add_links() = ToProto(Downstream(), *status.downstream);
  }
  telemetry.set_uptime_seconds(SystemClock::Get()->MonotonicSeconds() - start_seconds);
  return telemetry;
}

void StageServer::State::WriteMetrics(MetricWriter& writer) const {
  WriteProcessMetrics(flags.device, writer);
  WriteTlsMetrics(ExpiryOf(tls_identity.get()), writer);
  rpc_metrics.Write(writer);
  grpc->WriteMetrics(writer);
  const StageStatus status = runtime->Status();
  WriteStageMetrics(flags.name, status, writer);
  if (card != nullptr) WriteDeviceMetrics(flags.name, card->Read(), writer);
  micro_batches.Write(flags.name, writer);
  WriteDataMetrics(flags.name, data_cache->fetched_bytes(), data_cache->cached_bytes(), writer);
  WriteLinkMetrics(flags.name, Upstream(), status.upstream, writer);
  WriteLinkMetrics(flags.name, Downstream(), status.downstream, writer);
}

void StageServer::Shutdown() {
  if (state_->grpc == nullptr) return;
  state_->draining = true;
  state_->grpc->SetServing(false);
  // The lease goes on, so that the coordinator does not take a stage that ends its step for lost.
  if (state_->lease != nullptr) state_->lease->StartDraining();
  // With a lost device nothing is left to end: its error has been answered.
  if (fault().ok()) {
    state_->runtime->Drain(DrainSeconds(state_->flags.server.exit_timeout_seconds));
  }
  if (state_->lease != nullptr) state_->lease->Stop();
  state_->http.Stop();
  state_->probes.Stop();
  state_->snapshot_client->Shutdown();
  state_->store->Shutdown();
  state_->data_store->Shutdown();
  state_->data_cache->Shutdown();
  state_->runtime->Shutdown();
  state_->connector->Shutdown();
  state_->grpc->Shutdown(1.0);
  if (state_->loop != nullptr) state_->loop->Stop();  // null: the server never came up
  state_->grpc.reset();
}

}  // namespace stagecoach
