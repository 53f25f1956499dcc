// Stage runtimes with their threads, over in-process links: commands, decisions, and who is
// refused. What goes wrong on the way is in stage_runtime_fault_test.cc.
#include "stage/runtime/stage_runtime.h"

#include "base/files/hash.h"
#include "checkpoint/folder_probe.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/optimizers/sgd.h"
#include "stage/backends/reference/reference_backend.h"
#include "stage/testing/runtime_fleet.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;

std::string Text(const absl::Status& status) { return std::string(status.message()); }

class StageRuntimeTest : public testing::Test {
 protected:
  static std::map<std::string, std::string> Digests(const Manifest& manifest) {
    std::map<std::string, std::string> digests;
    for (const ShardInfo& shard : manifest.shards) {
      for (const ShardTensor& tensor : shard.tensors) digests[tensor.entry.name] = tensor.sha256;
    }
    return digests;
  }
};

TEST_F(StageRuntimeTest, ThreeStagesTrainLikeOneAndGoOnFromACheckpointOnTwo) {
  RuntimeFleet one({.stages = 1}), three({.stages = 3});
  ASSERT_TRUE(one.LoadAll(1).ok());
  const auto expected = one.TrainSteps(1, 0, 6);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto end = one.Checkpoint(1, 6, "/a/end");
  ASSERT_TRUE(end.ok()) << end.status();

  ASSERT_TRUE(three.LoadAll(1).ok());
  const auto first = three.TrainSteps(1, 0, 3);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(three.Checkpoint(1, 3, "/a/middle").ok());
  ASSERT_TRUE(three.TrainSteps(1, 3, 4).ok()) << "work that is lost";
  ASSERT_TRUE(three.LoadAll(2, 3, "/a/middle", 2).ok());
  const auto rest = three.TrainSteps(2, 3, 6);
  ASSERT_TRUE(rest.ok()) << rest.status();

  std::vector<double> losses = *first;
  losses.insert(losses.end(), rest->begin(), rest->end());
  EXPECT_EQ(losses, *expected);
  const auto resumed_end = three.Checkpoint(2, 6, "/a/end");
  ASSERT_TRUE(resumed_end.ok()) << resumed_end.status();
  EXPECT_EQ(Digests(*resumed_end), Digests(*end));
}

// Counts what the host gave to the device.
class CountingBackend final : public ReferenceBackend {
 public:
  explicit CountingBackend(int64_t* bytes) : ReferenceBackend(BackendOptions{}), bytes_(bytes) {}
  void CopyFromHost(std::span<const std::byte> source, const Tensor& target) override {
    *bytes_ += static_cast<int64_t>(source.size());
    ReferenceBackend::CopyFromHost(source, target);
  }

 private:
  int64_t* const bytes_;
};

// Seen: a recovery of a large cell drew all its initial weights, copied them to the device and then
// wrote the checkpoint's over them.
TEST_F(StageRuntimeTest, ALoadFromACheckpointDrawsNoInitialWeights) {
  int64_t copied = 0;
  RuntimeFleet::Options options{.stages = 1};
  options.make_backend = [&copied] { return std::make_unique<CountingBackend>(&copied); };
  RuntimeFleet fleet(options);
  ASSERT_TRUE(fleet.LoadAll(1).ok());
  EXPECT_GT(copied, 0) << "the first weights come from the seed";
  ASSERT_TRUE(fleet.TrainSteps(1, 0, 1).ok());
  const auto checkpoint = fleet.Checkpoint(1, 1, "/a/one");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  int64_t tensors = 0;
  for (const ShardTensor& tensor : checkpoint->shards.at(0).tensors) {
    tensors += tensor.entry.end - tensor.entry.begin;
  }
  copied = 0;
  ASSERT_TRUE(fleet.LoadAll(2, 1, "/a/one").ok());
  EXPECT_EQ(copied, tensors) << "each tensor of the checkpoint once and nothing else";
}

TEST_F(StageRuntimeTest, LoadSaysWhatTheStageHolds) {
  RuntimeFleet fleet({.stages = 3});
  std::vector<LoadAnswer> answers(3);
  for (int k = 0; k < 3; ++k) fleet.runtime(k).Load(fleet.LoadOf(k, 1, 0), answers[k].callback());
  std::vector<LoadResult> results;
  for (LoadAnswer& answer : answers) {
    const auto result = answer.Get();
    ASSERT_TRUE(result.ok()) << result.status();
    results.push_back(*result);
  }
  EXPECT_EQ(results[0].data.bytes, 2000);
  EXPECT_EQ(results[0].data, results[2].data);
  EXPECT_EQ(results[1].data, DatasetManifest{}) << "the middle reads no data";
  for (const LoadResult& result : results) {
    EXPECT_EQ(result.fingerprint, results[0].fingerprint);
    EXPECT_GT(result.memory.parameters, 0);
    EXPECT_EQ(result.memory.gradients, result.memory.parameters);
    EXPECT_EQ(result.memory.optimizer, 2 * result.memory.parameters);
  }
}

TEST_F(StageRuntimeTest, EvaluatesBetweenSteps) {
  RuntimeFleet one({.stages = 1}), two({.stages = 2});
  ASSERT_TRUE(one.LoadAll(1).ok() && two.LoadAll(1).ok());
  ASSERT_TRUE(one.TrainSteps(1, 0, 2).ok() && two.TrainSteps(1, 0, 2).ok());
  std::vector<double> losses;
  for (uint64_t batch : {0, 1}) {
    RunCommand command{.fence = RuntimeFleet::FenceOf(1, 2), .work = WorkKind::kEvaluate};
    command.evaluation_batch = batch;
    const auto a = one.RunAll(command), b = two.RunAll(command);
    ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
    EXPECT_EQ(a->back().loss_sum, b->back().loss_sum);
    EXPECT_EQ(b->back().targets, 20);
    EXPECT_TRUE(b->back().layer_squared_norms.empty());
    losses.push_back(b->back().loss_sum);
  }
  EXPECT_NE(losses[0], losses[1]) << "the same fence, another batch: not the stored report";
  EXPECT_EQ(*one.TrainSteps(1, 2, 3), *two.TrainSteps(1, 2, 3));
}

// Weights and averages change places between programs, and the copies of tied ones in other stages
// follow.
TEST_F(StageRuntimeTest, EvaluatesTheAveragesOfTheWeightsAndGoesOnWithTheWeights) {
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    RuntimeFleet::Options options{.stages = 3};
    options.tied_embeddings = true;
    options.precision = precision;
    RuntimeFleet plain(options);
    options.average = {.decay = 0.5};
    RuntimeFleet three(options);
    options.stages = 1;
    RuntimeFleet one(options);
    for (RuntimeFleet* fleet : {&plain, &three, &one}) {
      ASSERT_TRUE(fleet->LoadAll(1).ok());
      ASSERT_TRUE(fleet->TrainSteps(1, 0, 2).ok());
    }
    std::vector<double> losses;
    const std::vector<bool> averages = {false, true, true, false, true};
    for (size_t i = 0; i < averages.size(); ++i) {
      RunCommand command{.fence = RuntimeFleet::FenceOf(1, 2), .work = WorkKind::kEvaluate};
      command.evaluation_batch = i == 2 ? 1 : 0;
      command.average = averages[i];
      const auto a = one.RunAll(command), b = three.RunAll(command);
      ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
      EXPECT_EQ(a->back().loss_sum, b->back().loss_sum) << i;
      losses.push_back(b->back().loss_sum);
    }
    EXPECT_NE(losses[0], losses[1]);
    EXPECT_NE(losses[1], losses[2]) << "another batch";
    EXPECT_EQ(losses[0], losses[3]) << "the weights again";
    EXPECT_EQ(losses[1], losses[4]) << "and their averages again";
    // What is written and trained on are the weights.
    const auto written = three.Checkpoint(1, 2, "/a/x"), expected = plain.Checkpoint(1, 2, "/a/x");
    ASSERT_TRUE(written.ok() && expected.ok()) << written.status() << expected.status();
    std::map<std::string, std::string> digests = Digests(*written);
    EXPECT_EQ(digests["opt/average/0000/tokens"],
              Digests(*one.Checkpoint(1, 2, "/a/x"))["opt/average/0000/tokens"]);
    std::erase_if(digests,
                  [](const auto& named) { return named.first.starts_with("opt/average/"); });
    EXPECT_EQ(digests, Digests(*expected));
    EXPECT_EQ(*three.TrainSteps(1, 2, 3), *plain.TrainSteps(1, 2, 3));
  }
}

TEST_F(StageRuntimeTest, AnAverageThatIsNotKeptCannotBeEvaluated) {
  RuntimeFleet fleet({.stages = 1});
  ASSERT_TRUE(fleet.LoadAll(1).ok());
  RunCommand command{.fence = RuntimeFleet::FenceOf(1, 0), .work = WorkKind::kEvaluate};
  command.average = true;
  EXPECT_EQ(fleet.Run(0, command).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(StageRuntimeTest, RepeatedCommandsReturnTheirResultWithoutWork) {
  RuntimeFleet fleet({.stages = 1});
  ASSERT_TRUE(fleet.LoadAll(1).ok());
  ASSERT_TRUE(fleet.TrainSteps(1, 0, 1).ok());
  const RunCommand command = RuntimeFleet::Train(1, 1, false);
  const auto first = fleet.Run(0, command);
  ASSERT_TRUE(first.ok()) << first.status();
  const uint64_t progress = fleet.runtime(0).Status().progress;
  const auto again = fleet.Run(0, command);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->loss_sum, first->loss_sum);
  EXPECT_EQ(again->step_seconds, first->step_seconds);
  EXPECT_EQ(fleet.runtime(0).Status().progress, progress) << "nothing was computed";
  EXPECT_TRUE(fleet.LoadAll(1).ok()) << "the load that is in effect";
  EXPECT_EQ(fleet.runtime(0).Status().fence.step, 1u) << "and it has not started over";
  const auto written = fleet.Checkpoint(1, 1, "/a/x");
  ASSERT_TRUE(written.ok()) << written.status();
  const int64_t calls = fleet.file_system().calls();
  ShardAnswer shard;
  fleet.runtime(0).WriteShard({.fence = RuntimeFleet::FenceOf(1, 1), .folder = "/a/x"},
                              shard.callback());
  const auto again_written = shard.Get();
  ASSERT_TRUE(again_written.ok());
  EXPECT_EQ(*again_written, written->shards[0]);
  EXPECT_EQ(fleet.file_system().calls(), calls) << "nothing was written";
}

TEST_F(StageRuntimeTest, AppliesADecisionExactlyOnce) {
  RuntimeFleet fleet({.stages = 1});
  ASSERT_TRUE(fleet.LoadAll(1).ok());
  ASSERT_TRUE(fleet.RunAll(RuntimeFleet::Train(1, 0, false)).ok());
  const RunCommand apply{.fence = RuntimeFleet::FenceOf(1, 1), .apply = RuntimeFleet::Decision(0)};
  ASSERT_TRUE(fleet.Run(0, apply).ok());
  const auto once = fleet.Checkpoint(1, 1, "/a/once");
  ASSERT_TRUE(once.ok());
  // The same decision once more, with the work that follows: ignored. Another one: refused.
  RunCommand train = RuntimeFleet::Train(1, 1, true);
  ASSERT_TRUE(fleet.Run(0, train).ok());
  const auto still = fleet.Checkpoint(1, 1, "/a/still");
  ASSERT_TRUE(still.ok());
  EXPECT_EQ(Digests(*still), Digests(*once));
  RunCommand other{.fence = RuntimeFleet::FenceOf(1, 1), .apply = RuntimeFleet::Decision(0)};
  other.apply->learning_rate = 0.06;
  other.fence.attempt = 1;
  EXPECT_EQ(fleet.Run(0, other).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(StageRuntimeTest, ASkippedStepDropsItsGradients) {
  RuntimeFleet fleet({.stages = 1});
  ASSERT_TRUE(fleet.LoadAll(1).ok());
  const auto before = fleet.Checkpoint(1, 0, "/a/before");
  ASSERT_TRUE(before.ok());
  ASSERT_TRUE(fleet.RunAll(RuntimeFleet::Train(1, 0, false)).ok());
  RunCommand skip{.fence = RuntimeFleet::FenceOf(1, 1), .apply = ApplyDecision{.apply = false}};
  ASSERT_TRUE(fleet.Run(0, skip).ok());
  const auto after = fleet.Checkpoint(1, 1, "/a/after");
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(Digests(*after), Digests(*before));
  // Step 1 on a stage that never ran step 0 has the same gradients: nothing of step 0 is left.
  RuntimeFleet fresh({.stages = 1});
  ASSERT_TRUE(fresh.LoadAll(1, 1).ok());
  const auto a = fleet.RunAll(RuntimeFleet::Train(1, 1, false));
  const auto b = fresh.RunAll(RuntimeFleet::Train(1, 1, false));
  ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
  EXPECT_EQ(a->back().layer_squared_norms, b->back().layer_squared_norms);
}

TEST_F(StageRuntimeTest, AFreshOptimizerTakesTheWeightsAloneAndBeginsAtZero) {
  RuntimeFleet fleet({.stages = 1});
  ASSERT_TRUE(fleet.LoadAll(1).ok());
  ASSERT_TRUE(fleet.TrainSteps(1, 0, 2).ok());
  const auto adamw = fleet.Checkpoint(1, 2, "/a/adamw");
  ASSERT_TRUE(adamw.ok()) << adamw.status();
  fleet.spec().training.optimizer = SgdSpec{.momentum = 0.9};
  LoadCommand command = fleet.LoadOf(0, 2, 2, "/a/adamw");
  LoadAnswer refused;
  fleet.runtime(0).Load(command, refused.callback());
  EXPECT_EQ(refused.Get().status().code(), absl::StatusCode::kDataLoss) << "no velocity in there";
  command.fence = RuntimeFleet::FenceOf(3, 2);
  command.fresh_optimizer = true;
  LoadAnswer loaded;
  fleet.runtime(0).Load(command, loaded.callback());
  const absl::Status status = loaded.Get().status();
  ASSERT_TRUE(status.ok()) << status;
  const auto sgd = fleet.Checkpoint(3, 2, "/a/sgd");
  ASSERT_TRUE(sgd.ok()) << sgd.status();
  const std::map<std::string, std::string> before = Digests(*adamw);
  int velocities = 0;
  for (const ShardTensor& tensor : sgd->shards.at(0).tensors) {
    const std::string& name = tensor.entry.name;
    if (name.starts_with("model/")) {
      EXPECT_EQ(tensor.sha256, before.at(name)) << name;
      continue;
    }
    ++velocities;
    EXPECT_THAT(name, HasSubstr("opt/velocity/"));
    EXPECT_EQ(tensor.sha256, Sha256Hex(std::string(tensor.entry.bytes(), '\0'))) << name;
  }
  EXPECT_GT(velocities, 0);
}

// The coordinator says how many updates the optimizer has seen; the step's number says it no more.
TEST_F(StageRuntimeTest, TheOptimizersCountIsTheDecisionsAndNotTheStep) {
  std::vector<std::map<std::string, std::string>> digests;
  for (const uint64_t seen : {0, 1, 1}) {
    RuntimeFleet fleet({.stages = 1});
    ASSERT_TRUE(fleet.LoadAll(1).ok());
    ASSERT_TRUE(fleet.RunAll(RuntimeFleet::Train(1, 0, false)).ok());
    RunCommand apply{.fence = RuntimeFleet::FenceOf(1, 1), .apply = RuntimeFleet::Decision(0)};
    apply.apply->optimizer_steps = seen;
    ASSERT_TRUE(fleet.RunAll(apply).ok());
    const auto checkpoint = fleet.Checkpoint(1, 1, "/a/one");
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    digests.push_back(Digests(*checkpoint));
  }
  EXPECT_NE(digests[0], digests[1]);
  EXPECT_EQ(digests[1], digests[2]);
}

TEST_F(StageRuntimeTest, RefusesAStepThatIsNotTheNextNamingBoth) {
  RuntimeFleet fleet({.stages = 1});
  ASSERT_TRUE(fleet.LoadAll(1).ok());
  absl::Status status = fleet.Run(0, RuntimeFleet::Train(1, 4, false)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(status), HasSubstr("step 4 asked for, step 0 is the next one on stage 0"));
  status = fleet.Run(0, RuntimeFleet::Train(1, 1, true)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << "step 0 has no gradients yet";
  ASSERT_TRUE(fleet.TrainSteps(1, 0, 1).ok()) << "refused commands change nothing";
  ShardAnswer shard;
  fleet.runtime(0).WriteShard({.fence = RuntimeFleet::FenceOf(1, 0), .folder = "/a"},
                              shard.callback());
  EXPECT_THAT(Text(shard.Get().status()), HasSubstr("shard of step 0 asked for, stage 0 is at"));
}

TEST_F(StageRuntimeTest, AStepRunsAgainOnlyAfterANewLoad) {
  RuntimeFleet fleet({.stages = 1});
  ASSERT_TRUE(fleet.LoadAll(1).ok());
  ASSERT_TRUE(fleet.RunAll(RuntimeFleet::Train(1, 0, false)).ok());
  RunCommand again = RuntimeFleet::Train(1, 0, false);
  again.fence.attempt = 1;
  const absl::Status status = fleet.Run(0, again).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(status), HasSubstr("waits for its decision"));
}

TEST_F(StageRuntimeTest, RefusesOlderIncarnations) {
  RuntimeFleet fleet({.stages = 1});
  ASSERT_TRUE(fleet.LoadAll(5).ok());
  EXPECT_EQ(fleet.Run(0, RuntimeFleet::Train(4, 0, false)).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(fleet.Run(0, RuntimeFleet::Train(6, 0, false)).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(fleet.LoadAll(4).code(), absl::StatusCode::kAborted);
  LoadCommand other_job = fleet.LoadOf(0, 9, 0);
  other_job.fence.job = "b";
  other_job.fence.term = 0;
  LoadAnswer answer;
  fleet.runtime(0).Load(other_job, answer.callback());
  EXPECT_EQ(answer.Get().status().code(), absl::StatusCode::kAborted) << "of an earlier start";
  ReleaseAnswer release;
  fleet.runtime(0).Release(RuntimeFleet::FenceOf(4, 0), release.callback());
  EXPECT_EQ(release.Get().code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(fleet.Run(0, RuntimeFleet::Train(5, 0, false)).ok());
  EXPECT_EQ(fleet.runtime(0).Status().fence.generation, 5u);
}

// 10,000 stages x 65,536 micro-batches of instructions ended a stage that had one cell to load.
TEST_F(StageRuntimeTest, RefusesASchedulesSizeBeforeItIsMade) {
  RuntimeFleet fleet({.stages = 2});
  LoadCommand command = fleet.LoadOf(0, 1, 0);
  command.network = std::make_shared<const Network>(
      *ExpandNetwork(GptSpec{.layers = 20, .width = 4, .heads = 2, .context = 3, .vocabulary = 7}));
  command.partition = *UniformPartition(static_cast<int>(command.network->layers.size()), 17);
  command.spec.pipeline.stages = 0;  // auto
  command.spec.training.batch_size = command.spec.training.micro_batches = 1 << 16;
  LoadAnswer answer;
  fleet.runtime(0).Load(command, answer.callback());
  EXPECT_THAT(Text(answer.Get().status()), HasSubstr("with pipeline.stages=17 at most 15420"));
}

TEST_F(StageRuntimeTest, RefusesLoadsThatMakeNoSense) {
  RuntimeFleet fleet({.stages = 2});
  const auto load = [&fleet](const LoadCommand& command) {
    LoadAnswer answer;
    fleet.runtime(0).Load(command, answer.callback());
    const absl::Status status = answer.Get().status();
    EXPECT_EQ(fleet.runtime(0).Status().state, "empty");
    return status;
  };
  LoadCommand partition = fleet.LoadOf(0, 1, 0);
  partition.partition.first_layers = {0, 7};
  EXPECT_THAT(Text(load(partition)), HasSubstr("partition: first layers [0, 7]"));
  LoadCommand stage = fleet.LoadOf(0, 1, 0);
  stage.stage = StageId(2);
  EXPECT_EQ(load(stage).code(), absl::StatusCode::kInvalidArgument);
  LoadCommand address = fleet.LoadOf(0, 1, 0);
  address.neighbours[0].downstream_address.clear();
  EXPECT_THAT(Text(load(address)), HasSubstr("downstream_address: empty"));
  LoadCommand data = fleet.LoadOf(0, 1, 0);
  data.expected_data = {.bytes = 2001, .sha256 = "00"};
  const absl::Status changed = load(data);
  EXPECT_EQ(changed.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(changed), HasSubstr("the job was started with 2001 bytes"));
  LoadCommand checkpoint = fleet.LoadOf(0, 1, 3, "/nowhere");
  EXPECT_FALSE(load(checkpoint).ok());
  EXPECT_TRUE(fleet.LoadAll(1).ok()) << "a failed load can be tried again";
}

// A stage with a disk of its own trained for days, and none of its shards were ever found.
TEST_F(StageRuntimeTest, LoadsNothingBeforeItHasSeenTheFolderOfCheckpoints) {
  RuntimeFleet fleet({.stages = 2});
  const auto load = [&fleet](uint64_t generation, const std::string& folder) {
    LoadCommand command = fleet.LoadOf(0, generation, 0);
    command.probe_folder = folder;
    LoadAnswer answer;
    fleet.runtime(0).Load(command, answer.callback());
    return answer.Get();
  };
  const auto elsewhere = load(1, "/elsewhere");
  ASSERT_TRUE(elsewhere.ok()) << elsewhere.status();
  EXPECT_TRUE(absl::IsNotFound(elsewhere->folder));
  EXPECT_THAT(Text(elsewhere->folder), HasSubstr("/elsewhere/probe"));
  EXPECT_EQ(fleet.runtime(0).Status().state, "empty");

  ASSERT_TRUE(fleet.file_system().MakeFolders("/shared").ok());
  const auto probe = WriteFolderProbe(fleet.file_system(), "/shared");
  ASSERT_TRUE(probe.ok()) << probe.status();
  const auto shared = load(2, "/shared");
  ASSERT_TRUE(shared.ok()) << shared.status();
  EXPECT_TRUE(shared->folder.ok()) << shared->folder;
  EXPECT_TRUE(CheckFolderAnswer(fleet.file_system(), *probe, 0).ok());
  EXPECT_EQ(fleet.runtime(0).Status().state, "ready");

  fleet.file_system().SetCapacity(0);
  const auto full = load(3, "/shared");
  ASSERT_TRUE(full.ok()) << full.status();
  EXPECT_TRUE(absl::IsResourceExhausted(full->folder));
  EXPECT_EQ(fleet.runtime(0).Status().state, "ready") << "it can train all the same";
}

TEST_F(StageRuntimeTest, ReleaseFreesWhatTheCellHeld) {
  RuntimeFleet fleet({.stages = 2});
  ASSERT_TRUE(fleet.LoadAll(1).ok());
  ASSERT_TRUE(fleet.TrainSteps(1, 0, 1).ok());
  EXPECT_GT(fleet.runtime(0).Status().memory.total_current, 0);
  for (int k : {0, 1}) {
    ReleaseAnswer answer;
    fleet.runtime(k).Release(RuntimeFleet::FenceOf(1, 1), answer.callback());
    EXPECT_TRUE(answer.Get().ok());
    const StageStatus status = fleet.runtime(k).Status();
    EXPECT_EQ(status.state, "empty");
    EXPECT_EQ(status.memory.total_current, 0);
    EXPECT_EQ(status.memory.cached, 0);
  }
  EXPECT_EQ(fleet.Run(0, RuntimeFleet::Train(1, 1, false)).status().code(),
            absl::StatusCode::kAborted);
}

TEST_F(StageRuntimeTest, ReportsAddUpAndNamePeaks) {
  RuntimeFleet fleet({.stages = 2});
  ASSERT_TRUE(fleet.LoadAll(1).ok());
  ASSERT_TRUE(fleet.RunAll(RuntimeFleet::Train(1, 0, false)).ok());
  const auto reports = fleet.RunAll(RuntimeFleet::Train(1, 1, true));
  ASSERT_TRUE(reports.ok()) << reports.status();
  for (const StepReport& report : *reports) {
    EXPECT_EQ(report.fence, RuntimeFleet::FenceOf(1, 1));
    EXPECT_NEAR(report.phases.Sum(), report.step_seconds, 1e-9);
    EXPECT_GT(report.phases[Phase::kOptimizer], 0) << "the decision belongs to the step";
    EXPECT_GT(report.phases[Phase::kForward], 0);
    EXPECT_GT(report.phases[Phase::kBackward], 0);
    EXPECT_GT(report.memory_peak.activations, 0);
    EXPECT_GT(report.memory_peak.parameters, 0);
    EXPECT_TRUE(report.finite);
  }
  const StageStatus status = fleet.runtime(1).Status();
  EXPECT_EQ(status.state, "ready");
  EXPECT_EQ(status.fence, RuntimeFleet::FenceOf(1, 1));
  EXPECT_EQ(status.stage, StageId(1));
  ASSERT_TRUE(status.upstream.has_value());
  EXPECT_FALSE(status.downstream.has_value());
  EXPECT_EQ(status.upstream->received_messages, 6u) << "three micro-batches, two steps";
  EXPECT_EQ(status.upstream->sent_messages, 6u);
}

TEST_F(StageRuntimeTest, ProfilesEveryLayerAndEqualOnesOnce) {
  RuntimeFleet fleet({.stages = 1});
  ProfileAnswer answer;
  fleet.runtime(0).Profile(fleet.Profile(), answer.callback());
  const auto profile = answer.Get();
  ASSERT_TRUE(profile.ok()) << profile.status();
  ASSERT_EQ(profile->size(), 7u);
  for (const LayerProfile& layer : *profile) {
    EXPECT_GT(layer.forward_seconds, 0);
    EXPECT_GT(layer.backward_seconds, 0);
  }
  EXPECT_EQ((*profile)[1].forward_seconds, (*profile)[3].forward_seconds) << "both attention";
  EXPECT_EQ((*profile)[2].backward_seconds, (*profile)[4].backward_seconds) << "both mlp";
  ASSERT_TRUE(fleet.LoadAll(1).ok());
  ProfileAnswer loaded;
  fleet.runtime(0).Profile(fleet.Profile(), loaded.callback());
  EXPECT_EQ(loaded.Get().status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace stagecoach
