// Snapshots in the memory of stages: a lost process costs the steps since the last one, and no disk
// is read.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/testing/in_process_peers.h"
#include "stage/testing/runtime_fleet.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;

constexpr char kKey[] = "key";

class SnapshotTest : public testing::Test {
 protected:
  explicit SnapshotTest(int stages = 3) { Make(stages); }

  void Make(int stages, bool averages = false, bool tied = false, int64_t limit = 0) {
    RuntimeFleet::Options options{.stages = stages,
                                  .memory_limit_bytes = limit,
                                  .tied_embeddings = tied,
                                  .snapshot_peers = &peers_};
    if (averages) options.average = {.decay = 0.5};
    fleet_ = std::make_unique<RuntimeFleet>(options);
    peers_.set_fleet(fleet_.get());
  }

  static std::string ManifestOf(uint64_t step) {
    return FormatManifest({.job = "a", .state = {.step = step}});
  }

  LoadCommand LoadOf(int k, int stages, uint64_t generation, const Snapshot* snapshot) {
    const uint64_t step = snapshot == nullptr ? 0 : snapshot->manifest.state.step;
    LoadCommand load = fleet_->LoadOf(k, generation, step, "", stages);
    load.snapshot.key = kKey;
    if (stages > 1) load.snapshot.replica_address = InProcessPeers::AddressOf((k + 1) % stages);
    if (snapshot == nullptr) return load;
    load.snapshot.manifest = FormatManifest(snapshot->manifest);
    for (size_t i = 0; i < snapshot->holders.size(); ++i) {
      load.snapshot.holders.push_back(
          {snapshot->manifest.shards[i].file, InProcessPeers::AddressOf(snapshot->holders[i])});
    }
    return load;
  }

  absl::Status LoadAll(int stages, uint64_t generation, const Snapshot* snapshot = nullptr) {
    stages_ = stages;
    std::vector<LoadAnswer> answers(static_cast<size_t>(stages));
    for (int k = 0; k < stages; ++k) {
      fleet_->runtime(k).Load(LoadOf(k, stages, generation, snapshot), answers[k].callback());
    }
    absl::Status status;
    takes_snapshots_ = true;
    for (LoadAnswer& answer : answers) {
      const auto result = answer.Get();
      status.Update(result.status());
      takes_snapshots_ = takes_snapshots_ && result.ok() && result->snapshots;
    }
    return status;
  }

  absl::StatusOr<std::vector<StepReport>> RunAll(const RunCommand& command) {
    std::vector<RunAnswer> answers(static_cast<size_t>(stages_));
    for (int k = 0; k < stages_; ++k) fleet_->runtime(k).Run(command, answers[k].callback());
    std::vector<StepReport> reports;
    for (RunAnswer& answer : answers) {
      ASSIGN_OR_RETURN(StepReport report, answer.Get());
      reports.push_back(std::move(report));
    }
    return reports;
  }

  // Steps [first, last); the loss of each. A snapshot is taken as step `at` begins.
  std::vector<double> Train(uint64_t generation, uint64_t first, uint64_t last,
                            std::optional<uint64_t> at = std::nullopt, uint64_t kept = 0,
                            bool of_load = true) {
    std::vector<double> losses;
    for (uint64_t step = first; step < last; ++step) {
      RunCommand command = RuntimeFleet::Train(generation, step, step > first);
      if (step == at) command.snapshot = ManifestOf(step);
      command.snapshot_kept = kept;
      command.snapshot_of_load = of_load;
      const auto reports = RunAll(command);
      CHECK_OK(reports.status());
      losses.push_back(reports->back().loss_sum);
      reports_ = *reports;
    }
    RunCommand apply{.fence = RuntimeFleet::FenceOf(generation, last),
                     .apply = RuntimeFleet::Decision(last - 1)};
    CHECK_OK(RunAll(apply).status());
    return losses;
  }

  std::vector<std::vector<HeldShard>> Held(int stages) {
    std::vector<std::vector<HeldShard>> held;
    for (int k = 0; k < stages; ++k) held.push_back(fleet_->runtime(k).ListSnapshots("a", kKey));
    return held;
  }
  std::optional<Snapshot> Newest(int stages = 0) {
    return NewestSnapshot(Held(stages == 0 ? fleet_->stages() : stages), 7, 1, 1000);
  }
  // Each stage holds two shards of that step: of its own, and of the one before.
  void AwaitWhole(uint64_t step) {
    Await([&] {
      for (const auto& held : Held(stages_)) {
        const auto of_step = std::count_if(
            held.begin(), held.end(), [step](const HeldShard& one) { return one.step == step; });
        if (of_step < 2) return false;
      }
      return true;
    });
  }

  // Trains on from `step` until no snapshot is on its way: it is stored a moment before its thread
  // is done. first_decides: the first command decides about the step before. The next step.
  uint64_t TrainUntilSent(uint64_t generation, uint64_t step, bool first_decides) {
    bool decides = first_decides;
    Await([&] {
      const auto reports = RunAll(RuntimeFleet::Train(generation, step, decides));
      CHECK_OK(reports.status());
      ++step;
      decides = true;
      return !IsAnyBusy(*reports);
    });
    return step;
  }

  static bool IsAnyBusy(const std::vector<StepReport>& reports) {
    return std::any_of(reports.begin(), reports.end(),
                       [](const StepReport& report) { return report.snapshot.busy; });
  }

  InProcessPeers peers_;
  std::unique_ptr<RuntimeFleet> fleet_;
  std::vector<StepReport> reports_;
  int stages_ = 0;
  bool takes_snapshots_ = false;
};

TEST_F(SnapshotTest, AnyLostStageGoesOnFromMemoryWithTheSameBitsAndNoDisk) {
  for (const bool tied : {false, true}) {
    for (int lost = 0; lost < 3; ++lost) {
      Make(3, /*averages=*/tied, tied);
      ASSERT_TRUE(LoadAll(3, 1).ok());
      ASSERT_TRUE(takes_snapshots_);
      const std::vector<double> golden = Train(1, 0, 6, 2);
      AwaitWhole(2);
      fleet_->Restart(lost);
      fleet_->file_system().Inject({.from_then_on = true});
      const std::optional<Snapshot> snapshot = Newest();
      ASSERT_TRUE(snapshot.has_value()) << lost;
      EXPECT_EQ(snapshot->manifest.state.step, 2u);
      const absl::Status loaded = LoadAll(3, 2, &*snapshot);
      ASSERT_TRUE(loaded.ok()) << loaded;
      EXPECT_EQ(Train(2, 2, 6), std::vector<double>(golden.begin() + 2, golden.end())) << lost;
      EXPECT_EQ(fleet_->file_system().calls(), 0) << "no disk was asked for anything";
    }
  }
}

TEST_F(SnapshotTest, WhatSurvivesLoadsOnFewerStages) {
  ASSERT_TRUE(LoadAll(3, 1).ok());
  const std::vector<double> golden = Train(1, 0, 5, 3);
  AwaitWhole(3);
  fleet_->Restart(2);
  const std::optional<Snapshot> snapshot = Newest();
  ASSERT_TRUE(snapshot.has_value());
  const absl::Status loaded = LoadAll(2, 2, &*snapshot);
  ASSERT_TRUE(loaded.ok()) << loaded;
  EXPECT_EQ(Train(2, 3, 5), std::vector<double>(golden.begin() + 3, golden.end()));
}

// Symptom: the job of a machine that stayed away ended with what was on disk, and the survivors'
// memory was let go.
TEST_F(SnapshotTest, WhatSurvivesIsWrittenAsTheCheckpointThatTheStagesWouldHaveWritten) {
  ASSERT_TRUE(LoadAll(3, 1).ok());
  Train(1, 0, 2, 2);
  CHECK_OK(fleet_->file_system().MakeFolders("/a/as-stages"));
  for (int k = 0; k < 3; ++k) {
    ShardAnswer answer;
    fleet_->runtime(k).WriteShard({.fence = RuntimeFleet::FenceOf(1, 2), .folder = "/a/as-stages"},
                                  answer.callback());
    ASSERT_TRUE(answer.Get().ok());
  }
  RunCommand command = RuntimeFleet::Train(1, 2, false);
  command.snapshot = ManifestOf(2);
  ASSERT_TRUE(RunAll(command).ok());
  AwaitWhole(2);
  fleet_->Restart(2);
  const std::optional<Snapshot> snapshot = Newest();
  ASSERT_TRUE(snapshot.has_value());
  CHECK_OK(fleet_->file_system().MakeFolders("/a/from-memory"));
  for (size_t i = 0; i < snapshot->holders.size(); ++i) {
    const ShardInfo& shard = snapshot->manifest.shards[i];
    ShardAnswer answer;
    fleet_->runtime(snapshot->holders[i])
        .WriteShard({.fence = RuntimeFleet::FenceOf(2, 2),
                     .folder = "/a/from-memory",
                     .snapshot_files = {shard.file},
                     .snapshot_key = kKey},
                    answer.callback());
    const auto written = answer.Get();
    ASSERT_TRUE(written.ok()) << written.status();
    EXPECT_EQ(*written, shard);
    EXPECT_EQ(fleet_->file_system().Contents("/a/from-memory/" + shard.file),
              fleet_->file_system().Contents("/a/as-stages/" + shard.file));
  }
  ShardAnswer stranger;
  fleet_->runtime(0).WriteShard({.fence = RuntimeFleet::FenceOf(2, 2),
                                 .folder = "/a/from-memory",
                                 .snapshot_files = {snapshot->manifest.shards[0].file},
                                 .snapshot_key = "another"},
                                stranger.callback());
  EXPECT_TRUE(absl::IsNotFound(stranger.Get().status()));
}

TEST_F(SnapshotTest, TwoNeighboursLostAreMoreThanMemoryHolds) {
  ASSERT_TRUE(LoadAll(3, 1).ok());
  Train(1, 0, 3, 2);
  AwaitWhole(2);
  fleet_->Restart(0);
  fleet_->Restart(1);
  EXPECT_FALSE(Newest().has_value()) << "what stage 0 had was at stage 1";
}

TEST_F(SnapshotTest, KeepsTheNewestWholeOneAndTheOneOnItsWay) {
  ASSERT_TRUE(LoadAll(3, 1).ok());
  Train(1, 0, 2, 1);
  AwaitWhole(1);
  const std::optional<Snapshot> first = Newest();
  ASSERT_TRUE(first.has_value());
  ASSERT_TRUE(LoadAll(3, 2, &*first).ok()) << "another generation keeps what it loads from";
  Train(2, 1, 3, 2, /*kept=*/1);
  AwaitWhole(2);
  for (const auto& held : Held(3)) EXPECT_EQ(held.size(), 4u) << "1 and 2, own and the neighbour's";
  const uint64_t step = TrainUntilSent(2, 3, /*first_decides=*/false);
  // The network is down: the next one stays where it was taken.
  peers_.fails = true;
  RunCommand command = RuntimeFleet::Train(2, step, true);
  command.snapshot = ManifestOf(step);
  command.snapshot_kept = 2;
  ASSERT_TRUE(RunAll(command).ok());
  Await([&] { return Newest()->manifest.state.step == step; });  // each stage has its own
  fleet_->Restart(1);
  EXPECT_EQ(Newest()->manifest.state.step, 2u) << "nobody else has the lost one's";
}

// Seen in review: shards of every cut that a step was loaded with stayed, for they were of the step
// that is kept.
TEST_F(SnapshotTest, RecoveriesWithOtherCutsLeaveTwoOfEachAtMost) {
  ASSERT_TRUE(LoadAll(3, 1).ok());
  Train(1, 0, 3, 2);
  AwaitWhole(2);
  uint64_t generation = 2;
  for (const int stages : {2, 3, 2}) {
    const std::optional<Snapshot> snapshot = Newest();
    ASSERT_TRUE(snapshot.has_value());
    ASSERT_EQ(snapshot->manifest.state.step, 2u);
    ASSERT_TRUE(LoadAll(stages, generation, &*snapshot).ok()) << stages;
    RunCommand command = RuntimeFleet::Train(generation, 2, false);
    command.snapshot = ManifestOf(2);
    command.snapshot_kept = 2;
    command.snapshot_of_load = true;
    ASSERT_TRUE(RunAll(command).ok());
    // What the load used is whole already, so it does not show when the new ones are.
    TrainUntilSent(generation, 3, /*first_decides=*/true);
    AwaitWhole(2);
    for (int k = 0; k < stages; ++k) {
      const std::vector<HeldShard> held = Held(3)[static_cast<size_t>(k)];
      std::string names;
      for (const HeldShard& one : held) names += one.info.file + " ";
      EXPECT_LE(held.size(), 4u) << "generation " << generation << ", stage " << k << ": " << names;
    }
    ++generation;
  }
}

TEST_F(SnapshotTest, ALoadOfWhichNoneAreTakenLetsGoOfWhatItUsed) {
  ASSERT_TRUE(LoadAll(3, 1).ok());
  Train(1, 0, 3, 2);
  AwaitWhole(2);
  const std::optional<Snapshot> snapshot = Newest();
  ASSERT_TRUE(snapshot.has_value());
  ASSERT_TRUE(LoadAll(1, 2, &*snapshot).ok());
  EXPECT_GT(fleet_->runtime(0).Status().snapshot_bytes, 0) << "others may still fetch some";
  RunCommand command = RuntimeFleet::Train(2, 2, false);
  command.snapshots_end = true;
  ASSERT_TRUE(RunAll(command).ok());
  EXPECT_EQ(fleet_->runtime(0).Status().snapshot_bytes, 0);
}

TEST_F(SnapshotTest, ReportsSayWhatIsWholeAndWhatWentWrong) {
  ASSERT_TRUE(LoadAll(3, 1).ok());
  peers_.fails = true;
  uint64_t step = 0;
  const auto run = [&](bool takes) {
    RunCommand command = RuntimeFleet::Train(1, step, step > 0);
    if (takes) command.snapshot = ManifestOf(step);
    ++step;
    const auto reports = RunAll(command);
    CHECK_OK(reports.status());
    return *reports;
  };
  run(false);
  std::vector<StepReport> reports = run(true);
  std::string note;
  Await([&] {
    if (note.empty()) note = reports[0].snapshot_note;
    reports = run(false);
    return !note.empty() && !IsAnyBusy(reports);
  });
  EXPECT_THAT(note, HasSubstr("the network of the test is down"));
  EXPECT_FALSE(reports[0].snapshot.whole_step.has_value());
  peers_.fails = false;
  const uint64_t taken = step;
  run(true);
  Await([&] {
    reports = run(false);
    return std::all_of(reports.begin(), reports.end(), [taken](const StepReport& report) {
      return report.snapshot.whole_step == taken;
    });
  });
  EXPECT_GT(reports[0].snapshot.seconds, 0);
}

TEST_F(SnapshotTest, ABitThatIsWrongOnTheWayIsNeverTrainedOn) {
  ASSERT_TRUE(LoadAll(3, 1).ok());
  Train(1, 0, 3, 2);
  AwaitWhole(2);
  fleet_->Restart(1);
  const std::optional<Snapshot> snapshot = Newest();
  ASSERT_TRUE(snapshot.has_value());
  peers_.flips = true;
  const absl::Status loaded = LoadAll(3, 2, &*snapshot);
  EXPECT_TRUE(absl::IsDataLoss(loaded)) << loaded;
  EXPECT_THAT(std::string(loaded.message()), HasSubstr("digest"));
}

TEST_F(SnapshotTest, AreGoneWithTheJobAndNeverAnotherJobs) {
  ASSERT_TRUE(LoadAll(3, 1).ok());
  Train(1, 0, 3, 2);
  AwaitWhole(2);
  EXPECT_GT(fleet_->runtime(0).Status().snapshot_bytes, 0);
  EXPECT_TRUE(fleet_->runtime(0).ListSnapshots("a", "another key").empty());
  EXPECT_TRUE(fleet_->runtime(0).ListSnapshots("b", kKey).empty());
  ReleaseAnswer answer;
  fleet_->runtime(0).Release(RuntimeFleet::FenceOf(1, 0), answer.callback());
  ASSERT_TRUE(answer.Get().ok());
  EXPECT_EQ(fleet_->runtime(0).Status().snapshot_bytes, 0);
  // A load that does not use it: whoever decided so has something newer.
  ASSERT_TRUE(LoadAll(3, 2).ok());
  EXPECT_EQ(fleet_->runtime(1).Status().snapshot_bytes, 0);
}

TEST_F(SnapshotTest, TakesCopiesOfItsNeighbourAlone) {
  ASSERT_TRUE(LoadAll(3, 1).ok());
  const auto put = [&](const std::function<void(SnapshotPart*)>& change) {
    static const std::vector<std::byte> bytes(100);
    SnapshotPart part{.fence = RuntimeFleet::FenceOf(1, 2), .key = kKey};
    part.shard = {.step = 2, .layers = {{0, 3}}, .manifest = ManifestOf(2)};
    const LoadCommand load = fleet_->LoadOf(1, 1, 0);
    part.shard.info.file = ShardFileName({{load.partition.first(0), load.partition.last(0, 7)}});
    part.shard.info.bytes = 200;
    part.bytes = bytes;
    change(&part);
    return fleet_->runtime(1).PutSnapshot(part);
  };
  using Part = SnapshotPart;
  EXPECT_TRUE(put([](Part*) {}).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(put([](Part* part) { part->offset = 50; })));
  EXPECT_TRUE(put([](Part* part) { part->offset = 100; }).ok());
  EXPECT_EQ(fleet_->runtime(1).ListSnapshots("a", kKey).size(), 1u);
  EXPECT_TRUE(absl::IsFailedPrecondition(put([](Part* part) { part->offset = 100; })))
      << "it is complete";
  EXPECT_TRUE(absl::IsAborted(put([](Part* part) { part->key = "x"; })));
  EXPECT_TRUE(absl::IsAborted(put([](Part* part) { part->fence.generation = 2; })));
  EXPECT_TRUE(absl::IsAborted(put([](Part* part) { part->fence.job = "b"; })));
  EXPECT_TRUE(absl::IsInvalidArgument(put([](Part* part) { part->shard.info.file = "x"; })));
  EXPECT_TRUE(
      absl::IsInvalidArgument(put([](Part* part) { part->shard.info.bytes = int64_t{1} << 40; })));
  EXPECT_TRUE(absl::IsInvalidArgument(put([](Part* part) { part->shard.info.bytes = 0; })));
  EXPECT_TRUE(absl::IsInvalidArgument(put([](Part* part) { part->shard.step = 3; })));
}

TEST_F(SnapshotTest, AStageWithoutRoomSaysSoAndTrainsAllTheSame) {
  Make(3, false, false, /*limit=*/int64_t{1} << 40);
  ASSERT_TRUE(LoadAll(3, 1).ok());
  EXPECT_TRUE(takes_snapshots_);
  const int64_t needed = fleet_->runtime(0).Status().memory.total_peak;
  Make(3, false, false, 4 * needed);
  ASSERT_TRUE(LoadAll(3, 1).ok());
  EXPECT_FALSE(takes_snapshots_);
  EXPECT_EQ(Train(1, 0, 2, 1).size(), 2u);
  EXPECT_THAT(reports_[0].snapshot_note, HasSubstr("without a place for snapshots"));
}

}  // namespace
}  // namespace stagecoach
