// What the faults of a scenario do to its world, and how they heal.
#include <limits>

#include "absl/strings/str_cat.h"
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
      folder_fails_ = true;
      return storage_.Inject({.call = 1,
                              .code = static_cast<absl::StatusCode>(fault.other),
                              .from_then_on = true,
                              .as_posix = true});
    case Kind::kHostFolder:
      return host.files->Fail(fault.amount, static_cast<absl::StatusCode>(fault.other));
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
      return storage_.SetCapacity(std::numeric_limits<int64_t>::max());
    case Kind::kFolderFails:
      folder_fails_ = false;
      return storage_.ClearFault();
    case Kind::kHostFolder:
      return host.files->Fail(0, absl::StatusCode::kUnavailable);
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
  storage_.SetCapacity(kEndless);
  const absl::StatusOr<int64_t> free = storage_.FreeBytes("/");  // or it fails anyway
  if (free.ok()) storage_.SetCapacity(kEndless - *free + static_cast<int64_t>(fault.amount));
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
  EndProcess(kCoordinatorHost, false);
  disk_.Restore(copy->second);
  old_journal_ = true;
  for (const auto& user : users_) user->ForgetWhatWasSeen();
}

void World::Rot() {
  std::vector<std::string> files;
  CheckpointStore store(&storage_, store_->root());
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
