#include "services/coordinator/coordinator_server.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/status.h"
#include "checkpoint/files/file_system.h"
#include "checkpoint/store/store.h"
#include "coordinator/journal/merged_runs.h"
#include "coordinator/loop/job_manager.h"
#include "services/common/grpc/access/callers.h"
#include "services/common/grpc/access/peer_identity.h"
#include "services/common/grpc/grpc_channel.h"
#include "services/common/grpc/grpc_server.h"
#include "services/common/grpc/rpc_metrics.h"
#include "services/common/http/http_server.h"
#include "services/common/http/probe_server.h"
#include "services/common/observe/log.h"
#include "services/common/observe/metrics.h"
#include "services/common/process/process.h"
#include "services/common/tls/tls_expiry.h"
#include "services/common/tls/tls_identity.h"
#include "services/coordinator/api/data_service.h"
#include "services/coordinator/api/fleet_service.h"
#include "services/coordinator/api/job_service.h"
#include "services/coordinator/convert/job_codec.h"
#include "services/coordinator/data/data_bucket.h"
#include "services/coordinator/data/data_buckets.h"
#include "services/coordinator/data/data_catalog.h"
#include "services/coordinator/data/linked_objects.h"
#include "services/coordinator/http/event_stream.h"
#include "services/coordinator/http/http_api.h"
#include "services/coordinator/http/live_state.h"
#include "services/coordinator/stages/grpc_stage_client.h"
#include "services/coordinator/store/local_store_files.h"
#include "services/coordinator/store/object_files.h"
#include "services/coordinator/store/object_grants.h"
#include "services/coordinator/store/s3_store.h"
#include "services/coordinator/store/store_service.h"
#include "services/coordinator/watch/coordinator_metrics.h"
#include "services/coordinator/watch/export_sweep.h"
#include "services/coordinator/watch/folder_room.h"
#include "services/coordinator/watch/job_log.h"
#include "services/coordinator/watch/retention.h"
#include "services/coordinator/watch/trace_collector.h"
#include "services/records/record_writer.h"

namespace stagecoach {
namespace {

constexpr char kJobServiceName[] = "stagecoach.v1.JobService";
constexpr char kFleetServiceName[] = "stagecoach.v1.FleetService";
constexpr char kStoreServiceName[] = "stagecoach.v1.StoreService";
constexpr char kDataServiceName[] = "stagecoach.v1.DataService";
// Requests of the page and of scrapers; more of them wait in line.
constexpr int kHttpThreads = 16;
constexpr double kMostRecordsSeconds = 2;  // for files at the end

absl::Status CheckTokenFile(const CoordinatorFlags& flags) {
  if (flags.token_file.empty() || flags.server.tls.use_ssl) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("--token-file=", flags.token_file,
                   ": needs --grpc-use-ssl, or tokens could be read on the way"));
}

absl::Status CheckStore(const CoordinatorFlags& flags) {
  const bool s3 = IsS3Store(flags.store);
  if (!s3 && flags.store != kEmbeddedStore && flags.store != kFolderStore) {
    return absl::InvalidArgumentError(absl::StrCat("--store=", flags.store, ": want ",
                                                   kEmbeddedStore, ", ", kFolderStore,
                                                   " or s3://BUCKET/PREFIX"));
  }
  if (s3 && !flags.checkpoint_dir.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--checkpoint-dir=", flags.checkpoint_dir,
                                                   ": with --store=", flags.store,
                                                   " checkpoints are in the bucket; leave it out"));
  }
  if (!s3 && !flags.s3_endpoint.empty() && flags.data_buckets.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--s3-endpoint=", flags.s3_endpoint,
                     ": needs --store=s3://BUCKET/PREFIX or --data-buckets"));
  }
  return absl::OkStatus();
}

// A job that was forgotten before would keep its files for ever.
absl::Status CheckRetention(const CoordinatorFlags& flags) {
  const double days = flags.retention.days;
  if (flags.retention.given() && !flags.show_runs.empty()) {
    return absl::InvalidArgumentError(
        "--remove-ended-days, --remove-ended-bytes: with --show-run no job changes; leave them "
        "out");
  }
  if (days <= 0 || flags.keep_ended_days <= 0 || days <= flags.keep_ended_days) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--remove-ended-days=", days, ": jobs are forgotten before, by --keep-ended-days=",
      flags.keep_ended_days, ", and then their files stay; give at most that"));
}

}  // namespace

struct CoordinatorServer::State {
  State(const CoordinatorFlags& f, std::function<void()> fault_hook)
      : flags(f),
        on_fault(std::move(fault_hook)),
        rpc_metrics({kJobServiceName, kFleetServiceName, kStoreServiceName, kDataServiceName}) {}

  CoordinatorFlags flags;
  const std::function<void()> on_fault;
  mutable std::mutex fault_mutex;  // guards fault
  absl::Status fault;
  std::unique_ptr<TlsIdentity> identity;  // null: no TLS
  RpcMetrics rpc_metrics;
  MetricsRegistry metrics;
  ProtoJobCodec codec;
  std::unique_ptr<S3Store> bucket;          // null: none
  std::unique_ptr<FileSystem> local_files;  // null: with a bucket
  FileSystem* files = nullptr;              // of one of the two; also by the store's names
  const ObjectGrants grants;
  std::unique_ptr<ObjectFiles> objects;
  std::unique_ptr<DataBucket> data_bucket;  // null: data sets are in DataFolder()
  std::unique_ptr<DataCatalog> data;
  std::unique_ptr<DataBuckets> data_buckets;
  std::unique_ptr<LinkedObjects> linked;
  std::unique_ptr<CheckpointStore> checkpoints;
  std::unique_ptr<GrpcStageClient> stages;
  std::unique_ptr<TraceCollector> traces;
  std::unique_ptr<JobManager> manager;
  std::unique_ptr<CoordinatorMetrics> job_metrics;
  std::unique_ptr<FolderRoom> room;
  std::unique_ptr<LiveState> live;
  std::unique_ptr<EventStream> events;
  std::unique_ptr<HttpApi> api;
  std::unique_ptr<RecordWriter> records;
  std::unique_ptr<ExportSweep> exports;
  std::unique_ptr<Retention> retention;
  // Of both ports: who guesses at one is slowed at the other as well.
  const std::shared_ptr<TokenGuesses> guesses = std::make_shared<TokenGuesses>();
  std::unique_ptr<Callers> callers;
  std::unique_ptr<DataServiceAdapter> data_service;
  std::unique_ptr<JobServiceAdapter> job_service;
  std::unique_ptr<FleetServiceAdapter> fleet_service;
  std::unique_ptr<StoreService> store_service;
  std::unique_ptr<GrpcServer> grpc;
  HttpServer http, probes;
  std::atomic<bool> following{false};  // job_metrics is there
  std::atomic<bool> ready{false};
  std::atomic<bool> unreachable{false};

  bool in_folder() const { return flags.store == kFolderStore; }
  std::string ExportFolder() const { return absl::StrCat(flags.state_dir, "/exports"); }
  std::string RecordFolder() const { return absl::StrCat(flags.state_dir, "/jobs"); }
  std::string DataFolder() const { return absl::StrCat(flags.state_dir, "/data"); }
  void KeepFault(const absl::Status& status);
  absl::Status CopyShownRuns();
  absl::Status MakeFolders();
  absl::Status OpenStore();
  absl::Status OpenData();
  JobManagerOptions ManagerOptions() const;
  JobManager::Parts ManagerParts();
  absl::Status StartManager();
  void FollowJobs();
  absl::Status StartGrpc();
  absl::Status StartHttp();
};

CoordinatorServer::CoordinatorServer(const CoordinatorFlags& flags, std::function<void()> on_fault)
    : state_(std::make_unique<State>(flags, std::move(on_fault))) {}
CoordinatorServer::~CoordinatorServer() { Shutdown(); }

absl::Status CoordinatorServer::fault() const {
  std::lock_guard<std::mutex> lock(state_->fault_mutex);
  return state_->fault;
}

bool CoordinatorServer::unreachable() const { return state_->unreachable; }

void CoordinatorServer::State::KeepFault(const absl::Status& status) {
  spdlog::error("{}; this one ends", std::string(status.message()));
  {
    std::lock_guard<std::mutex> lock(fault_mutex);
    fault = status;
  }
  if (on_fault) on_fault();
}

absl::Status CoordinatorServer::Start() {
  RETURN_IF_ERROR(CheckExposure(state_->flags.server));
  RETURN_IF_ERROR(CheckTokenFile(state_->flags));
  RETURN_IF_ERROR(CheckStore(state_->flags));
  RETURN_IF_ERROR(CheckRetention(state_->flags));
  RETURN_IF_ERROR(state_->StartManager());
  RETURN_IF_ERROR(state_->StartGrpc());
  RETURN_IF_ERROR(state_->StartHttp());
  state_->grpc->SetServing(true);
  state_->ready = true;
  const std::string& port_file = state_->flags.server.port_file;
  if (!port_file.empty()) {
    RETURN_IF_ERROR(
        WritePortFile(port_file, state_->grpc->port(), state_->http.port(), state_->probes.port()));
  }
  return absl::OkStatus();
}

absl::Status CoordinatorServer::State::CopyShownRuns() {
  if (flags.show_runs.empty()) return absl::OkStatus();
  if (PosixFileSystem()->Exists(absl::StrCat(flags.state_dir, "/journal.sqlite"))) {
    return absl::FailedPreconditionError(absl::StrCat(
        "--state-dir=", flags.state_dir, ": has a journal; give a new folder with --show-run"));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> left_out,
                   MergeRuns(flags.show_runs, flags.state_dir));
  for (const std::string& run : left_out) spdlog::warn("not shown: {}", run);
  return absl::OkStatus();
}

absl::Status CoordinatorServer::State::MakeFolders() {
  // With --store=folder stages write here under the same path: it must not be a relative one.
  flags.state_dir = std::filesystem::absolute(flags.state_dir).lexically_normal().string();
  if (flags.checkpoint_dir.empty())
    flags.checkpoint_dir = absl::StrCat(flags.state_dir, "/checkpoints");
  flags.checkpoint_dir =
      std::filesystem::absolute(flags.checkpoint_dir).lexically_normal().string();
  RETURN_IF_ERROR(Annotate(PosixFileSystem()->MakeFolders(flags.state_dir), "--state-dir"));
  if (IsS3Store(flags.store)) return absl::OkStatus();
  return Annotate(PosixFileSystem()->MakeFolders(flags.checkpoint_dir), "--checkpoint-dir");
}

absl::Status CoordinatorServer::State::OpenStore() {
  ASSIGN_OR_RETURN(data_buckets, DataBuckets::Open({.prefixes = flags.data_buckets,
                                                    .endpoint = flags.s3_endpoint}));
  if (IsS3Store(flags.store)) {
    ASSIGN_OR_RETURN(bucket, S3Store::Open(flags.store, flags.s3_endpoint, PosixFileSystem()));
    files = &bucket->files;
  } else {
    local_files = std::make_unique<LocalStoreFiles>(PosixFileSystem(), flags.checkpoint_dir);
    files = local_files.get();
  }
  checkpoints = std::make_unique<CheckpointStore>(
      files, in_folder() ? flags.checkpoint_dir : LocalStoreFiles::Root());
  return absl::OkStatus();
}

absl::Status CoordinatorServer::State::OpenData() {
  DataCatalog::Options options{.keep_days = flags.data_keep_days};
  if (bucket == nullptr) {
    options.folder = DataFolder();
  } else {
    data_bucket = std::make_unique<DataBucket>(&bucket->quick);
    bucket->objects.ServeDataSets(data_bucket.get());
    options.shelf = data_bucket.get();
  }
  ASSIGN_OR_RETURN(data, DataCatalog::Open(options));
  return absl::OkStatus();
}

absl::Status CoordinatorServer::State::StartManager() {
  RETURN_IF_ERROR(MakeFolders());
  ASSIGN_OR_RETURN(identity, TlsIdentity::Load(flags.server.tls));
  RETURN_IF_ERROR(OpenStore());
  stages = std::make_unique<GrpcStageClient>(
      [of = identity.get(),
       any = flags.server.tls.any_certificate_i_know](const std::string& stage) {
        if (of == nullptr) return ChannelCredentialsOf(of);
        return of->MakeChannelCredentials([stage, any](std::span<const std::string> uris) {
          return CheckIsStage(uris, stage, any);
        });
      },
      &grants, /*unproven=*/bucket != nullptr);
  traces = std::make_unique<TraceCollector>(stages.get(), SystemClock::Get());
  RETURN_IF_ERROR(CopyShownRuns());
  ASSIGN_OR_RETURN(manager, JobManager::Start(ManagerOptions(), ManagerParts()));
  spdlog::info(
      "coordinator term {}, state in {}, checkpoints in {} ({})", manager->term(), flags.state_dir,
      bucket == nullptr ? flags.checkpoint_dir : bucket->client.location().base, flags.store);
  FollowJobs();
  return absl::OkStatus();
}

JobManagerOptions CoordinatorServer::State::ManagerOptions() const {
  JobManagerOptions options;
  options.state_folder = flags.state_dir;
  options.lease_seconds = flags.lease_seconds;
  options.hold_jobs = flags.hold_jobs;
  options.keep_ended_jobs = flags.keep_ended_jobs;
  options.keep_ended_days = flags.keep_ended_days;
  if (!flags.show_runs.empty()) {
    options.hold_jobs = options.only_shows = true;
    options.keep_ended_days = 0;
    options.keep_ended_jobs = options.max_jobs = std::numeric_limits<int32_t>::max();
  }
  return options;
}

JobManager::Parts CoordinatorServer::State::ManagerParts() {
  JobManager::Parts parts;
  parts.stages = stages.get();
  parts.checkpoints = checkpoints.get();
  parts.file_system = files;
  parts.codec = &codec;
  parts.clock = SystemClock::Get();
  parts.on_record = LogRecord;
  parts.on_journal = [](const absl::Status& status) {
    if (status.ok()) {
      spdlog::info("the journal is written again");
    } else {
      spdlog::error("{}", std::string(status.message()));
    }
  };
  parts.on_folder_lost = [this](const absl::Status& status) { KeepFault(status); };
  parts.on_unknown_jobs = [](const std::vector<std::string>& jobs) {
    constexpr size_t kMostNamed = 20;
    const size_t named = std::min(jobs.size(), kMostNamed);
    spdlog::error(
        "the journal does not have {} jobs whose folders of checkpoints or records are there: "
        "{}{}; it "
        "lost its last entries, as where journal.sqlite-wal was cut short or a backup restored: "
        "restore the journal, or go on from their checkpoints with resume: {{job: ID}}",
        jobs.size(),
        absl::StrJoin(jobs.begin(), jobs.begin() + static_cast<ptrdiff_t>(named), ", "),
        named < jobs.size() ? ", ..." : "");
  };
  parts.on_purged = [this](const JobView& view) {
    spdlog::info(
        "job {} is forgotten, by --keep-ended-jobs={} and --keep-ended-days={}: its checkpoints, "
        "exports and records stay on disk",
        view.id, flags.keep_ended_jobs, flags.keep_ended_days);
    if (following) job_metrics->Forget(view);
  };
  parts.on_removed = [this](const JobView& view) {
    spdlog::info("job {} was removed, with its checkpoints, exports and records", view.id);
    if (following) job_metrics->Forget(view);
  };
  // Asked for over gRPC, which is served once the records are followed.
  parts.before_removal = [this](const std::string& job) { records->Leave(job); };
  parts.on_accepted = [this](const JobView& view) {
    job_metrics->Follow(view);
    records->Follow(view.id);
  };
  return parts;
}

// Before the first call of a client, so that no acceptance is missed.
void CoordinatorServer::State::FollowJobs() {
  job_metrics = std::make_unique<CoordinatorMetrics>(manager.get());
  following = true;
  RecordWriterOptions options;
  options.folder = RecordFolder();
  records = std::make_unique<RecordWriter>(options, SourceOf(manager.get()));
  manager->List([this](const absl::StatusOr<std::vector<JobView>>& views) {
    if (!views.ok()) return;  // nobody is served yet: the manager was shut down
    for (const JobView& view : *views) {
      job_metrics->Follow(view);
      records->Follow(view.id);
    }
  });
}

absl::Status CoordinatorServer::State::StartGrpc() {
  ASSIGN_OR_RETURN(callers, Callers::Open(flags.token_file, guesses));
  RETURN_IF_ERROR(OpenData());
  linked = std::make_unique<LinkedObjects>(data.get(), data_buckets.get());
  data_service = std::make_unique<DataServiceAdapter>(DataServiceAdapter::Parts{
      .catalog = data.get(),
      .buckets = data_buckets.get(),
      .grants = &grants,
      .callers = callers.get(),
      .list_jobs = [this](DataServiceAdapter::OnJobs done) { manager->List(std::move(done)); }});
  exports = std::make_unique<ExportSweep>(ExportFolder());
  job_service =
      std::make_unique<JobServiceAdapter>(JobServiceAdapter::Parts{.manager = manager.get(),
                                                                   .checkpoints = checkpoints.get(),
                                                                   .file_system = files,
                                                                   .codec = &codec,
                                                                   .callers = callers.get(),
                                                                   .export_folder = ExportFolder(),
                                                                   .record_folder = RecordFolder(),
                                                                   .exports = exports.get(),
                                                                   .grants = &grants,
                                                                   .data = data_service.get(),
                                                                   .stages = stages.get(),
                                                                   .traces = traces.get(),
                                                                   .log = ProcessLogRing()});
  fleet_service = std::make_unique<FleetServiceAdapter>(manager.get());
  objects = std::make_unique<ObjectFiles>(ObjectFolders{.checkpoints = flags.checkpoint_dir,
                                                        .exports = ExportFolder(),
                                                        .records = RecordFolder(),
                                                        .data = DataFolder()});
  store_service = std::make_unique<StoreService>(
      objects.get(), &grants, bucket == nullptr ? nullptr : &bucket->objects, linked.get());
  GrpcServerOptions options;
  options.listen = flags.server.listen;
  options.tls = flags.server.tls;
  options.identity = identity.get();
  options.callers = callers.get();
  options.connections = flags.server.connections;
  options.on_unreachable = [this] {
    unreachable = true;
    if (on_fault) on_fault();
  };
  grpc = std::make_unique<GrpcServer>(
      options,
      std::vector<GrpcServer::NamedService>{{kJobServiceName, job_service.get()},
                                            {kFleetServiceName, fleet_service.get()},
                                            {kStoreServiceName, store_service.get()},
                                            {kDataServiceName, data_service.get()}},
      &rpc_metrics);
  RETURN_IF_ERROR(grpc->Start());
  spdlog::info("coordinator serves gRPC on port {}", grpc->port());
  Retention::Source retained =
      RetainedJobs(manager.get(), JobFilesIn(flags.state_dir, checkpoints.get(), files));
  retained.sweep_exports = [this](double now) { exports->Sweep(now); };
  retention = std::make_unique<Retention>(flags.retention, std::move(retained));
  return absl::OkStatus();
}

absl::Status CoordinatorServer::State::StartHttp() {
  std::vector<FolderRoom::Folder> folders = {{"state", flags.state_dir}};
  if (bucket == nullptr) folders.push_back({"checkpoints", flags.checkpoint_dir});
  room = std::make_unique<FolderRoom>(std::move(folders));
  metrics.AddSource([this](MetricWriter& writer) {
    WriteProcessMetrics("", writer);
    WriteTlsMetrics(ExpiryOf(identity.get()), writer);
    room->Write(writer);
    rpc_metrics.Write(writer);
    grpc->WriteMetrics(writer);
    job_metrics->Write(writer);
  });
  RETURN_IF_ERROR(
      StartProbes(flags.server,
                  {[this] { return metrics.Render(); }, [this] { return grpc->reachable(); },
                   [this] { return ready.load(); }},
                  http, probes));
  live = std::make_unique<LiveState>(manager.get(), SystemClock::Get());
  events = std::make_unique<EventStream>(manager.get(), live.get());
  api = std::make_unique<HttpApi>(HttpApi::Parts{.manager = manager.get(),
                                                 .checkpoints = checkpoints.get(),
                                                 .stages = stages.get(),
                                                 .traces = traces.get(),
                                                 .log = ProcessLogRing()});
  http.HandleStream(
      "/api/v1/stream",
      [this](const HttpRequest& request, HttpServer::StreamBody* body) {
        return events->Open(request, body);
      },
      EventStream::Busy());
  http.HandleBelow("/api/", [this](const HttpRequest& request) { return api->Answer(request); });
  http.HandleBelow("/", HttpApi::AnswerPage);
  return http.Start({.listen = flags.server.http,
                     .threads = kHttpThreads,
                     .max_streams = EventStream::kMostStreams,
                     .host_names = flags.http_hosts,
                     .token_file = flags.server.http_token_file,
                     .guesses = guesses});
}

void CoordinatorServer::Shutdown() {
  if (state_->grpc == nullptr) {
    if (state_->manager != nullptr) state_->manager->Shutdown();
    if (state_->records != nullptr) state_->records->Stop();
    return;
  }
  state_->ready = false;
  state_->grpc->SetServing(false);
  // Half of the time is for the steps at hand, the rest for closing what is left.
  const CoordinatorFlags& flags = state_->flags;
  // Whoever has the state folder now has taken the jobs over.
  if (fault().ok() &&
      !state_->manager->Drain(flags.checkpoint_on_exit, flags.server.exit_timeout_seconds / 2)) {
    spdlog::warn("a step did not end in time: it is abandoned, the next start repeats it");
  }
  state_->http.Stop();
  state_->probes.Stop();
  if (!state_->records->CatchUp(
          std::min(kMostRecordsSeconds, flags.server.exit_timeout_seconds / 10))) {
    spdlog::warn("records: not all were written in time; the next start goes on with them");
  }
  // A file effect may be waiting for the bucket. A commit whose answer it leaves is whole or none.
  if (state_->bucket != nullptr) state_->bucket->transfer.Shutdown();
  state_->data_buckets->Shutdown();
  state_->manager->Shutdown();  // ends every watch, so that the server can drain
  state_->retention.reset();
  state_->records->Stop();  // what the watches said is written
  state_->grpc->Shutdown(1.0);
  state_->grpc.reset();
}

}  // namespace stagecoach
