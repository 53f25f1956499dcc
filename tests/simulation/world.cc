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
    hosts_[host].address = absl::StrCat("host-", host, ":8101");
    hosts_[host].clock = std::make_unique<HostClock>(&time_);
    hosts_[host].files =
        std::make_unique<HostFiles>(&storage_, &random_, scenario.seed << 8 | uint64_t(host));
  }
  // As an operator has made them. The real file system syncs what it makes on the way there.
  CHECK(storage_.MakeFolders("/checkpoints").ok() && storage_.MakeFolders("/state").ok());
  CHECK(storage_.SyncFolder("/").ok());
  store_ = std::make_unique<CheckpointStore>(hosts_[kCoordinatorHost].files.get(), "/checkpoints");
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
  for (int host = 0; host < hosts(); ++host) EndProcess(host, true);
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
  parts.files = at.files.get();
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
  parts.store = store_.get();
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
  parts.on_end = [this](const std::string& job) { ended_seconds_[job] = time_.seconds(); };
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
  network_.EndProcess(host, power_cut);
  if (random_.Chance(0.5) && !folder_fails_) LeaveHalfDone(host);
  hosts_[host].stage.reset();
  if (host != kCoordinatorHost) return;
  coordinator_.reset();
  if (power_cut) disk_.CutPower();
}

// Of the file work at hand a process that dies has done some calls, and perhaps the one in which it
// died.
void World::LeaveHalfDone(int host) {
  storage_.Inject({.call = random_.From(1, kMostCalls),
                   .from_then_on = true,
                   .after_effect = random_.Chance(0.5)});
  if (hosts_[host].stage != nullptr) hosts_[host].stage->LeaveHalfDone();
  if (host == kCoordinatorHost) coordinator_->LeaveHalfDone();
  storage_.ClearFault();
}

// As somebody makes a backup every now and then. One from before the jobs were accepted would know
// of none.
void World::KeepJournal(const Fault& fault) {
  const bool accepted = std::all_of(users_.begin(), users_.end(), [](const auto& user) {
    return user->accepted() || user->refused();
  });
  if (accepted && coordinator_ != nullptr) {
    old_journals_[fault.at] = disk_.Files();
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
  ending.tensors = TensorsOf(ending.job.id);
  return ending;
}

// By name, so whatever the shards are.
std::string World::TensorsOf(const std::string& job) {
  storage_.ClearFault();
  CheckpointStore store(&storage_, store_->root());
  const std::vector<CheckpointRef> refs = store.List(job);
  if (refs.empty()) return "";
  const absl::StatusOr<Manifest> manifest = store.ReadManifest(refs.front());
  if (!manifest.ok()) return "";
  std::map<std::string, std::string> digests;
  for (const ShardInfo& shard : manifest->shards) {
    for (const ShardTensor& tensor : shard.tensors) digests[tensor.entry.name] = tensor.sha256;
  }
  std::string text = absl::StrCat("step ", manifest->state.step);
  for (const auto& [name, digest] : digests) absl::StrAppend(&text, " ", name, " ", digest);
  return text;
}

}  // namespace stagecoach
