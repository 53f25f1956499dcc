// What the faults of a scenario do to its world, and how they heal.
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "checkpoint/names.h"
#include "tests/simulation/world.h"

namespace stagecoach {

using Kind = Fault::Kind;

void World::ClosePath(int from, int to) {
  if (closed_[{from, to}]++ == 0) network_.ClosePath(from, to);
}

void World::OpenPath(int from, int to) {
  if (--closed_[{from, to}] == 0) network_.OpenPath(from, to);
}

void World::ForPaths(const Fault& fault, void (World::*what)(int from, int to)) {
  for (int other = 0; other < hosts(); ++other) {
    const bool meant = fault.kind == Kind::kIsolation ? other != fault.host : other == fault.other;
    if (!meant) continue;
    (this->*what)(fault.host, other);
    if (fault.kind != Kind::kOneWay) (this->*what)(other, fault.host);
  }
}

void World::Strike(const Fault& fault) {
  trace_.Note(FaultName(fault.kind), fault.host, static_cast<uint64_t>(fault.other));
  struck_.emplace_back(time_.seconds(), fault);
  Host& host = hosts_[fault.host];
  switch (fault.kind) {
    case Kind::kKill:
    case Kind::kPowerCut:
      return EndProcess(fault.host, fault.kind == Kind::kPowerCut);
    case Kind::kBlackout:
      return Blackout(fault);
    case Kind::kStop:
      return network_.StopProcess(fault.host);
    case Kind::kDrain:
      if (host.stage != nullptr) host.stage->StartDraining();
      if (fault.host == kCoordinatorHost) DrainCoordinator();
      return;
    case Kind::kPartition:
    case Kind::kOneWay:
    case Kind::kIsolation:
      return ForPaths(fault, &World::ClosePath);
    case Kind::kReset:
      return network_.ResetConnections(fault.host, fault.other);
    case Kind::kDelay:
      network_.SetDelay(fault.host, fault.other, fault.amount);
      return network_.SetDelay(fault.other, fault.host, fault.amount);
    case Kind::kLoss:
      network_.SetLoss(fault.host, fault.other, fault.amount);
      return network_.SetLoss(fault.other, fault.host, fault.amount);
    case Kind::kFlips:
      return network_.SetFlips(fault.host, fault.other, fault.amount);
    case Kind::kRepeats:
      return network_.SetRepeats(fault.amount);
    case Kind::kOldJournal:
      return BeginOldJournal(fault);
    case Kind::kJournalFull:
      return disk_.Set(MemoryDisk::State::kFull);
    case Kind::kJournalFails:
      return disk_.Set(MemoryDisk::State::kFails);
    case Kind::kJournalSlow:
      journal_slowness_ = fault.amount;
      return;
    case Kind::kFolderFull:
      return FillFolder(fault);
    case Kind::kFolderFails:
      return FailFolder(1, static_cast<absl::StatusCode>(fault.other));
    case Kind::kHostFolder:
      return FailHostFolder(host, fault.amount, static_cast<absl::StatusCode>(fault.other));
    case Kind::kStoreLoss:
      return host.calls->Lose(fault.amount);
    case Kind::kTwin:
      return StartTwin(fault);
    case Kind::kFolderSlow:
      folder_slowness_ = fault.amount;
      return;
    case Kind::kRot:
      return Rot();
    case Kind::kClockJump:
      return host.clock->Jump(fault.amount);
    case Kind::kSlowStage:
      host.slowness = fault.amount;
      if (host.stage != nullptr) host.stage->SetSlowness(fault.amount);
      return;
  }
}

void World::Heal(const Fault& fault) {
  Host& host = hosts_[fault.host];
  switch (fault.kind) {
    case Kind::kKill:
    case Kind::kPowerCut:
    case Kind::kOldJournal:
      return StartProcess(fault.host);
    case Kind::kBlackout:
      for (int other = 0; other < hosts(); ++other) StartAt(random_.Between(0, 0.3), other);
      return;
    case Kind::kStop:
      return network_.ContinueProcess(fault.host);
    case Kind::kPartition:
    case Kind::kOneWay:
    case Kind::kIsolation:
      return ForPaths(fault, &World::OpenPath);
    case Kind::kDelay:
      network_.SetDelay(fault.host, fault.other, 0);
      return network_.SetDelay(fault.other, fault.host, 0);
    case Kind::kLoss:
      network_.SetLoss(fault.host, fault.other, 0);
      return network_.SetLoss(fault.other, fault.host, 0);
    case Kind::kFlips:
      return network_.SetFlips(fault.host, fault.other, 0);
    case Kind::kRepeats:
      return network_.SetRepeats(0);
    case Kind::kJournalFull:
    case Kind::kJournalFails:
      return disk_.Set(MemoryDisk::State::kGood);
    case Kind::kJournalSlow:
      journal_slowness_ = 1;
      return;
    case Kind::kFolderFull:
      bucket_full_ = false;
      return storage_.SetCapacity(std::numeric_limits<int64_t>::max());
    case Kind::kFolderFails:
      return FailFolder(0, absl::StatusCode::kUnavailable);
    case Kind::kHostFolder:
      return FailHostFolder(host, 0, absl::StatusCode::kUnavailable);
    case Kind::kStoreLoss:
      return host.calls->Lose(0);
    case Kind::kTwin:
      return WakeTwin(time_.seconds());
    case Kind::kFolderSlow:
      folder_slowness_ = 1;
      return;
    case Kind::kSlowStage:
      host.slowness = 1;
      if (host.stage != nullptr) host.stage->SetSlowness(1);
      return;
    case Kind::kDrain:
    case Kind::kReset:
    case Kind::kRot:
    case Kind::kClockJump:
      return;
  }
}

void World::DrainCoordinator() {
  if (coordinator_ == nullptr) return;
  coordinator_->Drain(random_.Chance(0.5), [this, process = coordinator_->process()] {
    time_.After(0, [this, process] {
      if (!network_.Lives(kCoordinatorHost, process)) return;
      EndProcess(kCoordinatorHost, false);
      StartAt(random_.Between(0.05, 1), kCoordinatorHost);
    });
  });
}

void World::FillFolder(const Fault& fault) {
  constexpr int64_t kEndless = std::numeric_limits<int64_t>::max();
  bucket_full_ = scenario_.store == StoreForm::kBucket;
  if (bucket_full_) return;
  storage_.SetCapacity(kEndless);
  const absl::StatusOr<int64_t> free = storage_.FreeBytes("/");  // or it fails anyway
  if (free.ok()) storage_.SetCapacity(kEndless - *free + static_cast<int64_t>(fault.amount));
}

// share: 0: no more.
void World::FailFolder(double share, absl::StatusCode code) {
  if (scenario_.store == StoreForm::kBucket) {
    for (Host& host : hosts_) host.calls->Refuse(share, code);
    return;
  }
  folder_fails_ = share > 0;
  if (!folder_fails_) return storage_.ClearFault();
  storage_.Inject({.call = 1, .code = code, .from_then_on = true, .as_posix = true});
}

void World::FailHostFolder(Host& host, double share, absl::StatusCode code) {
  // The coordinator's own disk, or what all have as a folder.
  const bool files =
      scenario_.store == StoreForm::kFolder ||
      (scenario_.store == StoreForm::kEmbedded && &host == &hosts_[kCoordinatorHost]);
  if (files) return host.files->Fail(share, code);
  host.calls->Refuse(share, code);
}

// Both once the coordinator is at file work, or after a while all the same.
constexpr double kWaits = 2, kLook = 0.002;

void World::WakeTwin(double since) {
  if (twin_ == nullptr) return;
  const bool works = coordinator_ != nullptr && coordinator_->HasFileWork();
  if (works || time_.seconds() >= since + kWaits) {
    return network_.ContinueDetached(twin_->process());
  }
  time_.After(kLook, [this, since] { WakeTwin(since); });
}

void World::StartTwin(const Fault& fault) {
  if (scenario_.store == StoreForm::kEmbedded || coordinator_ == nullptr) return;
  if (!coordinator_->HasFileWork() && time_.seconds() < fault.at + kWaits) {
    return time_.After(kLook, [this, fault] { StartTwin(fault); });
  }
  EndTwin();
  network_.Detach(kCoordinatorHost);
  twin_ = std::move(coordinator_);
  const double start = random_.Between(0.05, 0.6);
  if (random_.Chance(0.6) && time_.seconds() < fault.until) {
    network_.StopDetached(twin_->process());
    // The new one's first file work is to sweep what the old one has begun.
    if (random_.Chance(0.5)) time_.After(start, [this] { WakeTwin(time_.seconds()); });
  }
  const std::string folder = absl::StrCat("/state-", ++twins_);
  MemoryDisk::Copy copy;
  for (const auto& [path, bytes] : disk_.Files()) {
    if (!path.starts_with(absl::StrCat(state_folder_, "/"))) continue;
    copy[absl::StrCat(folder, path.substr(state_folder_.size()))] = bytes;
  }
  disk_.Add(copy);
  state_folder_ = folder;
  StartAt(start, kCoordinatorHost);
}

void World::Blackout(const Fault&) {
  for (int host = 0; host < hosts(); ++host) EndProcess(host, true);
  constexpr FaultFileSystem::Survivors kinds[] = {
      FaultFileSystem::Survivors::kSynced, FaultFileSystem::Survivors::kEntries,
      FaultFileSystem::Survivors::kContents, FaultFileSystem::Survivors::kLeaves};
  storage_.CutPower(random_.Of(kinds));
}

void World::BeginOldJournal(const Fault& fault) {
  const auto copy = old_journals_.find(fault.at);
  if (copy == old_journals_.end()) return;
  EndTwin();
  EndProcess(kCoordinatorHost, false);
  disk_.Restore(copy->second.files);
  state_folder_ = copy->second.folder;
  old_journal_ = true;
  for (const auto& user : users_) user->ForgetWhatWasSeen();
}

void World::RotBucket() {
  const std::map<std::string, std::string> objects = bucket_.objects();
  std::vector<std::string> keys;  // aliases of steps, and what these lead to
  for (const auto& [key, content] : objects) {
    if (!ParseStepFolder(NameOf(key)).has_value()) continue;
    keys.push_back(key);
    const std::vector<std::string> lines = absl::StrSplit(content, '\n');
    if (lines.size() < 2) continue;
    const std::string folder = absl::StrCat(FolderOf(key), "/", lines[1], "/");
    for (const auto& [file, bytes] : objects) {
      if (file.starts_with(folder) && !bytes.empty()) keys.push_back(file);
    }
  }
  if (keys.empty()) return;
  const std::string& key = random_.Of(keys);
  std::string content = objects.at(key);
  content[random_.Below(content.size())] ^= static_cast<char>(1 << random_.Below(8));
  bucket_.Set(key, content);
}

void World::Rot() {
  if (scenario_.store == StoreForm::kBucket) return RotBucket();
  std::vector<std::string> files;
  CheckpointStore store(&storage_, kCheckpointFolder);
  for (const ScenarioJob& job : scenario_.jobs) {
    for (const CheckpointRef& ref : store.List(job.id)) {
      const absl::StatusOr<std::vector<std::string>> names = storage_.List(ref.folder);
      if (!names.ok()) continue;
      for (const std::string& name : *names) files.push_back(absl::StrCat(ref.folder, "/", name));
    }
  }
  if (files.empty()) return;
  const std::string& path = random_.Of(files);
  std::string bytes = storage_.Contents(path);
  if (bytes.empty()) return;
  bytes[random_.Below(bytes.size())] ^= static_cast<char>(1 << random_.Below(8));
  storage_.SetContents(path, bytes);
}

}  // namespace stagecoach
