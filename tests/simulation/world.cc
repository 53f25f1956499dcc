#include "tests/simulation/world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/testing/temporary_folder.h"

namespace stagecoach {
namespace {

constexpr double kStartAgain = 0.5;          // after a coordinator that could not start
constexpr uint64_t kMostEvents = 2'000'000;  // more of them is a livelock
constexpr int kMostCalls = 25;               // of the file system, in one piece of work or two
constexpr double kKeepAgain = 0.05;          // until a copy is tried again

// The one real file: what jobs train on, in a folder of this process.
class DataFolder {
 public:
  DataFolder() {
    folder_.Write(kDataFile, DataText());
    roots_ = std::make_unique<DataRoots>(DataRoots::Options{.roots = {folder_.path()}});
  }
  DataRoots* roots() { return roots_.get(); }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<DataRoots> roots_;
};

DataRoots* Data() {
  static DataFolder folder;
  return folder.roots();
}

}  // namespace

World::World(const Scenario& scenario, const Options& options)
    : scenario_(scenario),
      options_(options),
      random_(scenario.seed),
      trace_(&time_, options.shown),
      network_(&time_, &random_, &trace_, scenario.stages + 1),
      hosts_(static_cast<size_t>(scenario.stages) + 1) {
  disk_.Set(options.planted == PlantedFault::kForgetfulDisk ? MemoryDisk::State::kForgets
                                                            : MemoryDisk::State::kGood);
  for (int host = 0; host < hosts(); ++host) {
    MakeHost(host);
  }
  // As an operator has made them. The real file system syncs what it makes on the way there.
  CHECK(storage_.MakeFolders(kCheckpointFolder).ok() && storage_.MakeFolders(state_folder_).ok());
  CHECK(storage_.SyncFolder("/").ok());
  StartProcess(kCoordinatorHost);
  for (int host = 1; host < hosts(); ++host) {
    StartAt(random_.Between(0, 0.02), host);
  }
  for (const ScenarioJob& job : scenario.jobs) {
    const SimulatedUser::Parts parts{.time = &time_,
                                     .coordinator = [this] { return coordinator_.get(); },
                                     .first_watch = 1000 * (users_.size() + 1)};
    users_.push_back(std::make_unique<SimulatedUser>(parts, job));
  }
  for (const Fault& fault : scenario.faults) {
    time_.After(fault.at, [this, fault] { Strike(fault); });
    if (fault.kind == Fault::Kind::kOldJournal) {
      time_.After(std::max(0.0, fault.at - fault.amount), [this, fault] { KeepJournal(fault); });
    }
    if (fault.until < Fault::kForever) time_.After(fault.until, [this, fault] { Heal(fault); });
  }
}

World::~World() {
  EndTwin();
  for (int host = 0; host < hosts(); ++host) EndProcess(host, true);
}

void World::MakeHost(int host) {
  Host& at = hosts_[host];
  at.address = absl::StrCat("host-", host, ":8101");
  at.clock = std::make_unique<HostClock>(&time_);
  at.store_clock = std::make_unique<StoreClock>(at.clock.get());
  at.files = std::make_unique<HostFiles>(&storage_, &random_, scenario_.seed << 8 | uint64_t(host));
  at.calls = std::make_unique<CallFaults>(&random_);
  BucketTransfer::Parts parts{.bucket = &bucket_,
                              .faults = at.calls.get(),
                              .clock = at.store_clock.get(),
                              .full = &bucket_full_};
  if (host == kCoordinatorHost) {
    parts.between = [this] { Interleave(); };
    at.files->SetBetween(parts.between);
  }
  at.transfer = std::make_unique<BucketTransfer>(std::move(parts));
}

// ---- the store -----------------------------------------------------------------------------------

std::shared_ptr<CoordinatorStore> World::StoreOf(int host, BucketTransfer* transfer,
                                                 FileSystem* files) {
  return std::make_shared<CoordinatorStore>(
      CoordinatorStore::Parts{.form = scenario_.store,
                              .files = files,
                              .transfer = transfer,
                              .clock = hosts_[host].store_clock.get(),
                              .forgets = options_.planted == PlantedFault::kForgetfulStore});
}

std::unique_ptr<RemoteStoreFiles> World::StageStore(int host) {
  if (scenario_.store == StoreForm::kFolder) return nullptr;
  Host& at = hosts_[host];
  StoreClient::Options options;
  options.stub = [this, host, calls = at.calls.get()] {
    return std::make_shared<StoreStub>(StoreStub::Parts{
        .network = &network_,
        .faults = calls,
        .host = host,
        .coordinator_host = kCoordinatorHost,
        .store = [this] { return coordinator_ == nullptr ? nullptr : &coordinator_->store(); }});
  };
  options.transfer = at.transfer.get();
  options.clock = at.store_clock.get();
  return std::make_unique<RemoteStoreFiles>(at.files.get(), std::move(options));
}

// No call that `host` makes would get through now.
bool World::StoreAway(int host) {
  if (scenario_.store == StoreForm::kFolder) return false;
  if (hosts_[host].calls->all_fail()) return true;
  return host != kCoordinatorHost && !network_.Reaches(host, kCoordinatorHost);
}

// Two coordinators do their file work at the same time: in the middle of one's work, the other does
// some of its own.
void World::Interleave() {
  constexpr double kOften = 0.3;
  if (twin_ == nullptr || at_work_ == nullptr || interleaves_) return;
  CoordinatorProcess* const other = at_work_ == twin_.get() ? coordinator_.get() : twin_.get();
  if (other == nullptr || !other->HasFileWork() || !random_.Chance(kOften)) return;
  if (other == twin_.get() && network_.detached_stopped(other->process())) return;
  interleaves_ = true;
  ++interleaved_;
  trace_.Note("file work amid other file work", kCoordinatorHost, other->process());
  other->DoSomeFileWork();
  interleaves_ = false;
}

// ---- processes ----------------------------------------------------------------------------------

void World::StartAt(double when, int host) {
  time_.After(when, [this, host] { StartProcess(host); });
}

void World::StartProcess(int host) {
  if (network_.alive(host)) return;
  if (host == kCoordinatorHost) {
    StartCoordinator();
  } else {
    StartStage(host);
  }
}

void World::StartStage(int host) {
  Host& at = hosts_[host];
  StageServerProcess::Parts parts;
  parts.network = &network_;
  parts.trace = &trace_;
  parts.clock = at.clock.get();
  at.store = StageStore(host);
  parts.files = at.files.get();
  if (at.store != nullptr) parts.files = parts.store = at.store.get();
  parts.store_away = [this, host] { return StoreAway(host); };
  parts.store_slowness = &folder_slowness_;
  parts.data_roots = Data();
  parts.host = host;
  parts.coordinator_host = kCoordinatorHost;
  parts.process = network_.StartProcess(host);
  parts.pace = scenario_.pace;
  parts.name_of = [](int other) { return absl::StrCat("stage-", other); };
  parts.name = parts.name_of(host);
  parts.address = at.address;
  parts.host_of = [this](const std::string& address) {
    for (int other = 0; other < hosts(); ++other) {
      if (hosts_[other].address == address) return other;
    }
    CHECK(false) << "nobody is at " << address;
  };
  parts.links_at = [this](int other) { return &hosts_[other].stage->links(); };
  parts.snapshots_at = [this](int other) { return &hosts_[other].stage->snapshots(); };
  parts.coordinator = [this] { return coordinator_.get(); };
  parts.meddle = PlantedAt(host);
  parts.loaded_from_memory = [this] { ++loads_from_memory_; };
  parts.drained = [this, host, process = parts.process] {
    time_.After(0, [this, host, process] {
      if (!network_.Lives(host, process)) return;
      EndProcess(host, false);
      StartAt(random_.Between(0.05, 1), host);
    });
  };
  at.stage = std::make_unique<StageServerProcess>(parts);
  at.stage->SetSlowness(at.slowness);
}

void World::StartCoordinator() {
  CoordinatorProcess::Parts parts;
  parts.network = &network_;
  parts.trace = &trace_;
  parts.clock = hosts_[kCoordinatorHost].clock.get();
  parts.files = hosts_[kCoordinatorHost].files.get();
  parts.store = StoreOf(kCoordinatorHost, hosts_[kCoordinatorHost].transfer.get(), parts.files);
  parts.state_folder = state_folder_;
  parts.store_away = [this] { return StoreAway(kCoordinatorHost); };
  parts.at_work = [this](CoordinatorProcess* one) { at_work_ = one; };
  parts.disk = &disk_;
  parts.codec = &codec_;
  parts.host = kCoordinatorHost;
  parts.holds_jobs = scenario_.holds && time_.seconds() > 0;
  parts.process = network_.StartProcess(kCoordinatorHost);
  parts.host_of = [this](const std::string& address) {
    for (int other = 0; other < hosts(); ++other) {
      if (hosts_[other].address == address) return other;
    }
    CHECK(false) << "nobody is at " << address;
  };
  parts.stage_at = [this](int other) { return hosts_[other].stage.get(); };
  parts.on_end = [this, process = parts.process](const std::string& job) {
    if (network_.Lives(kCoordinatorHost, process)) ended_seconds_[job] = time_.seconds();
  };
  parts.journal_slowness = &journal_slowness_;
  parts.folder_slowness = &folder_slowness_;
  absl::StatusOr<std::unique_ptr<CoordinatorProcess>> started = CoordinatorProcess::Start(parts);
  if (started.ok()) {
    coordinator_ = *std::move(started);
    return;
  }
  trace_.Note("coordinator cannot start", kCoordinatorHost);
  trace_.Say(started.status().ToString());
  network_.EndProcess(kCoordinatorHost, false);
  StartAt(kStartAgain, kCoordinatorHost);
}

void World::EndProcess(int host, bool power_cut) {
  if (!network_.alive(host)) return;
  if (host == kCoordinatorHost && power_cut) EndTwin();  // of the disk no journal may be open
  network_.EndProcess(host, power_cut);
  if (random_.Chance(0.5) && !folder_fails_) LeaveHalfDone(host);
  hosts_[host].stage.reset();
  hosts_[host].store.reset();
  if (host != kCoordinatorHost) return;
  coordinator_.reset();
  if (power_cut) disk_.CutPower();
}

// Of the file work at hand a process that dies has done some calls, and perhaps the one in which it
// died.
void World::LeaveHalfDone(int host) {
  const int call = random_.From(1, kMostCalls);
  const bool done = random_.Chance(0.5);
  // A stage's calls go to a server that lives on.
  const bool by_calls = scenario_.store == StoreForm::kBucket ||
                        (scenario_.store == StoreForm::kEmbedded && host != kCoordinatorHost);
  Host& at = hosts_[host];
  if (by_calls) {
    at.calls->DieAt(call, done);
  } else {
    storage_.Inject({.call = call, .from_then_on = true, .after_effect = done});
  }
  if (at.stage != nullptr) at.stage->LeaveHalfDone();
  if (host == kCoordinatorHost) coordinator_->LeaveHalfDone();
  if (!by_calls) storage_.ClearFault();
  at.calls->Live();
  at.transfer->Live();
}

void World::EndTwin() {
  if (twin_ == nullptr) return;
  network_.EndDetached(twin_->process());
  twin_.reset();
}

// As somebody makes a backup every now and then. One from before the jobs were accepted would know
// of none.
void World::KeepJournal(const Fault& fault) {
  const bool accepted = std::all_of(users_.begin(), users_.end(), [](const auto& user) {
    return user->accepted() || user->refused();
  });
  if (accepted && coordinator_ != nullptr) {
    old_journals_[fault.at] = {disk_.Files(), state_folder_};
  } else if (time_.seconds() + kKeepAgain < fault.at) {
    time_.After(kKeepAgain, [this, fault] { KeepJournal(fault); });
  }
}

std::function<void(StageRequest*)> World::PlantedAt(int host) {
  if (options_.planted != PlantedFault::kWrongUpdate || host != 1) return {};
  return [this](StageRequest* request) {
    auto* const run = std::get_if<RunRequest>(request);
    if (run == nullptr || !run->command.apply.has_value() || planted_) return;
    planted_ = true;
    const ApplyDecision told = *run->command.apply;
    run->command.apply->learning_rate *= 1.5;
    run->done = [told, done = run->done](absl::StatusOr<StepReport> report) {
      if (report.ok()) report->applied = told;
      done(std::move(report));
    };
  };
}

// ---- the run ------------------------------------------------------------------------------------

bool World::AllEnded() const {
  return coordinator_ != nullptr && std::all_of(users_.begin(), users_.end(), [](const auto& user) {
           return user->ended() || user->refused() || !user->complaint().empty();
         });
}

WorldEnding World::Run(double limit_seconds) {
  WorldEnding ending;
  while (!AllEnded() && time_.seconds() < limit_seconds && !ending.livelock) {
    CHECK(time_.Step()) << "heartbeats never cease";
    ending.livelock = time_.events() >= kMostEvents;
  }
  ending.seconds = time_.seconds();
  ending.events = time_.events();
  ending.hash = trace_.hash();
  ending.old_journal = old_journal_;
  ending.loads_from_memory = loads_from_memory_;
  ending.twins = twins_;
  ending.interleaved = interleaved_;
  for (const auto& user : users_) ending.jobs.push_back(EndingOf(*user));
  ending.struck = struck_;
  return ending;
}

JobEnding World::EndingOf(const SimulatedUser& user) {
  JobEnding ending;
  ending.job = user.job();
  ending.accepted = user.accepted();
  ending.refused = user.refused();
  ending.ended = user.ended();
  ending.cancelled = user.cancelled();
  ending.complaint = user.complaint();
  ending.watched = user.watched();
  ending.ended_seconds = ended_seconds_[ending.job.id];
  ending.can_be_read = coordinator_ != nullptr;
  if (!ending.can_be_read) return ending;
  const JobLoop& loop = coordinator_->loop();
  if (const absl::StatusOr<JobView> view = loop.Get(ending.job.id); view.ok()) {
    ending.phase = view->phase;
    ending.message = view->message;
  }
  while (true) {
    const uint64_t after = ending.records.empty() ? 0 : ending.records.back().number;
    const absl::StatusOr<std::vector<JobRecord>> records =
        loop.Records(ending.job.id, after, JobLoop::kRecordsPerPump);
    if (!records.ok() || records->empty()) break;
    ending.records.insert(ending.records.end(), records->begin(), records->end());
  }
  AddCheckpoints(&ending);
  return ending;
}

// By name, so whatever the shards are.
void World::AddCheckpoints(JobEnding* ending) {
  storage_.ClearFault();
  CallFaults none(&random_);
  const bool full = false;
  BucketTransfer transfer({.bucket = &bucket_,
                           .faults = &none,
                           .clock = hosts_[kCoordinatorHost].store_clock.get(),
                           .full = &full});
  const auto store = StoreOf(kCoordinatorHost, &transfer, &storage_);
  for (const CheckpointRef& ref : store->checkpoints().ListWithDamaged(ending->job.id)) {
    const absl::StatusOr<Manifest> manifest = store->checkpoints().Verify(ref, /*tensors=*/true);
    if (!manifest.ok()) {
      ending->broken[ref.step] = manifest.status().ToString();
      continue;
    }
    std::map<std::string, std::string> digests;
    for (const ShardInfo& shard : manifest->shards) {
      for (const ShardTensor& tensor : shard.tensors) digests[tensor.entry.name] = tensor.sha256;
    }
    std::string& text = ending->checkpoints[ref.step];
    for (const auto& [name, digest] : digests) absl::StrAppend(&text, name, " ", digest, " ");
  }
}

}  // namespace stagecoach
