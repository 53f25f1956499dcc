#include "tests/simulation/scenario.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "network/layers/activations.h"
#include "network/layers/dropout.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/layers/norms.h"
#include "network/zoo/gpt.h"
#include "network/zoo/sequence.h"
#include "plan/data/text.h"
#include "plan/learning_rates/constant.h"
#include "plan/learning_rates/cosine.h"
#include "plan/optimizers/sgd.h"
#include "tests/simulation/host/seeded_random.h"

namespace stagecoach {
namespace {

constexpr int kVocabulary = 5, kContext = 2;
constexpr size_t kDataBytes = 240;
constexpr double kFirstFault = 0.4;                       // the first one strikes before that
constexpr double kMostBetween = 0.6, kMostInStorm = 0.8;  // from one to the next
constexpr double kMostJump = 60 * 86400;  // what ended 90 days ago is forgotten, by that clock
constexpr double kLongest = 8;            // of those that heal

SequenceSpec Small(std::vector<LayerSpec> layers) {
  return {.width = 3, .context = kContext, .vocabulary = kVocabulary, .layers = std::move(layers)};
}

JobSpec Common() {
  JobSpec spec;
  spec.name = "simulated";
  spec.seed = 7;
  spec.data = TextData{.path = kDataFile, .bytes = true};
  spec.training.steps = 6;
  spec.training.batch_size = 3;
  spec.training.micro_batches = 2;
  spec.training.learning_rate = ConstantRate{.peak = 0.05};
  spec.pipeline.stages = 1;
  spec.pipeline.partition.kind = PartitionSpec::Kind::kUniform;
  return spec;
}

// ---- what is drawn ------------------------------------------------------------------------------

double LengthOf(SeededRandom& random) {
  const double share = random.Share();
  if (share < 0.5) return random.Between(0.01, 0.5);
  if (share < 0.8) return random.Between(0.5, 2.5);
  return random.Between(2.5, kLongest);
}

ScenarioJob DrawJob(SeededRandom& random, int number, int most_stages) {
  ScenarioJob job;
  job.id = absl::StrCat("job-", number);
  job.family = random.From(0, kFamilies - 1);
  job.spec = SpecOfFamily(job.family);
  job.submit_at = number == 0 ? 0.01 : random.Between(0.01, 1.0);
  JobSpec& spec = job.spec;
  spec.pipeline.stages = random.From(1, most_stages);
  const char* const schedules[] = {"gpipe", "one_forward_one_backward", "zero_bubble",
                                   "interleaved", "zero_bubble_v"};
  spec.pipeline.schedule = random.Of(schedules);
  const Rematerialization modes[] = {Rematerialization::kAlways, Rematerialization::kExceptFirst,
                                     Rematerialization::kNever};
  spec.pipeline.rematerialization = random.Of(modes);
  if (random.Chance(0.1)) spec.pipeline.partition.kind = PartitionSpec::Kind::kAuto;
  spec.pipeline.continue_with_fewer_stages = random.Chance(0.2);
  // Which cannot go on with fewer: its bits depend on the devices and their places.
  spec.pipeline.mixed_devices = random.Chance(0.05) && !spec.pipeline.continue_with_fewer_stages;
  if (random.Chance(0.15)) {  // as many as are free
    spec.pipeline.stages = 0;
    spec.pipeline.min_stages = random.From(0, most_stages);
  }
  // Each stage must have its cells.
  const auto network = ExpandJob(spec);
  CHECK_OK(network.status());
  if (MostStages(spec.pipeline, std::ssize(network->layers)) <
      std::max<int64_t>({1, spec.pipeline.stages, spec.pipeline.min_stages})) {
    spec.pipeline.schedule = "gpipe";
  }
  spec.checkpoint.every_steps = random.Chance(0.4) ? 0 : random.From(1, 4);
  spec.checkpoint.keep = random.From(1, 3);
  spec.snapshot.never = random.Chance(0.15);
  spec.snapshot.every_steps = spec.snapshot.never ? 0 : random.From(1, 3);
  job.held_stages = random.From(0, most_stages);
  if (random.Chance(0.05)) job.cancel_at = random.Between(0.05, 4);
  return job;
}

// Goes on from a checkpoint of another job, in another cut: to the same end.
ScenarioJob DrawSuccessor(SeededRandom& random, const ScenarioJob& first) {
  ScenarioJob job = first;
  job.id = "job-2";
  job.spec.resume.job = first.id;
  job.submit_at = random.Between(0.1, 2);
  job.cancel_at = Fault::kForever;
  job.spec.checkpoint.every_steps = random.From(0, 4);
  return job;
}

constexpr absl::StatusCode kFolderCodes[] = {
    absl::StatusCode::kUnavailable, absl::StatusCode::kDataLoss,
    absl::StatusCode::kResourceExhausted, absl::StatusCode::kPermissionDenied};

// Kinds by how often they are drawn: what there is most of in the world comes most.
constexpr Fault::Kind kDrawn[] = {
    Fault::Kind::kKill,         Fault::Kind::kKill,        Fault::Kind::kKill,
    Fault::Kind::kKill,         Fault::Kind::kStop,        Fault::Kind::kStop,
    Fault::Kind::kStop,         Fault::Kind::kPowerCut,    Fault::Kind::kBlackout,
    Fault::Kind::kDrain,        Fault::Kind::kPartition,   Fault::Kind::kPartition,
    Fault::Kind::kOneWay,       Fault::Kind::kOneWay,      Fault::Kind::kIsolation,
    Fault::Kind::kIsolation,    Fault::Kind::kReset,       Fault::Kind::kReset,
    Fault::Kind::kDelay,        Fault::Kind::kDelay,       Fault::Kind::kLoss,
    Fault::Kind::kFlips,        Fault::Kind::kFlips,       Fault::Kind::kRepeats,
    Fault::Kind::kRepeats,      Fault::Kind::kOldJournal,  Fault::Kind::kJournalFull,
    Fault::Kind::kJournalFails, Fault::Kind::kJournalSlow, Fault::Kind::kFolderFull,
    Fault::Kind::kFolderFails,  Fault::Kind::kHostFolder,  Fault::Kind::kFolderSlow,
    Fault::Kind::kRot,          Fault::Kind::kClockJump,   Fault::Kind::kSlowStage,
    Fault::Kind::kStoreLoss,    Fault::Kind::kStoreLoss,   Fault::Kind::kTwin,
    Fault::Kind::kTwin};

void DrawAmount(SeededRandom& random, Fault* fault) {
  switch (fault->kind) {
    case Fault::Kind::kDelay:
      fault->amount = random.Between(0.002, 0.2);
      return;
    case Fault::Kind::kLoss:
      fault->amount = random.Between(0.01, 0.3);
      return;
    case Fault::Kind::kFlips:
      fault->amount = random.Between(0.002, 0.1);
      return;
    case Fault::Kind::kRepeats:
      fault->amount = random.Between(0.05, 0.8);
      return;
    case Fault::Kind::kOldJournal:
      fault->amount = random.Between(0.02, 2);
      return;
    case Fault::Kind::kJournalSlow:
      fault->amount = random.Between(10, 500);
      return;
    case Fault::Kind::kFolderSlow:
      fault->amount = random.Between(10, 300);
      return;
    case Fault::Kind::kFolderFull:
      fault->amount = random.Between(0, 3000);
      return;
    case Fault::Kind::kFolderFails:
    case Fault::Kind::kHostFolder:
      fault->amount = random.Chance(0.5) ? 1 : random.Between(0.05, 0.8);
      fault->other = static_cast<int>(random.Of(kFolderCodes));
      return;
    case Fault::Kind::kStoreLoss:
      fault->amount = random.Between(0.02, 0.6);
      return;
    case Fault::Kind::kClockJump:
      fault->amount = random.Between(-1, 1) * (random.Chance(0.5) ? 10 : kMostJump);
      return;
    case Fault::Kind::kSlowStage:
      fault->amount = random.Between(3, 20);
      return;
    default:
      return;
  }
}

Fault DrawFault(SeededRandom& random, int stages, double at, bool may_last) {
  Fault fault;
  fault.kind = random.Of(kDrawn);
  fault.at = at;
  fault.until = at + LengthOf(random);
  // One of its ends is the coordinator's as often as all stages together.
  fault.host = random.Chance(0.4) ? 0 : random.From(1, stages);
  fault.other = random.From(0, stages - 1);
  if (fault.other >= fault.host) ++fault.other;
  if (fault.kind == Fault::Kind::kSlowStage && fault.host == 0) fault.host = random.From(1, stages);
  if (fault.kind == Fault::Kind::kOldJournal || fault.kind == Fault::Kind::kTwin) fault.host = 0;
  DrawAmount(random, &fault);
  if (may_last && random.Chance(0.5)) fault.until = Fault::kForever;
  return fault;
}

}  // namespace

std::string DataText() {
  SeededRandom random(1);
  std::string text(kDataBytes, '\0');
  for (char& c : text) c = static_cast<char>(random.Below(kVocabulary));
  return text;
}

JobSpec SpecOfFamily(int family) {
  JobSpec spec = Common();
  switch (family) {
    case 0:
      spec.network = Small({EmbeddingSpec{}, LinearSpec{.out = 4}, ReluSpec{},
                            DropoutSpec{.rate = 0.25}, LinearSpec{.out = kVocabulary}});
      spec.evaluation = {.every_steps = 2, .batches = 2};
      return spec;
    case 1:
      spec.network = Small({EmbeddingSpec{}, LinearSpec{.out = 4}, BatchNormSpec{.momentum = 0.3},
                            LinearSpec{.out = kVocabulary}});
      spec.training.gradient_clip_norm = 0.5;
      spec.training.average = {.decay = 0.6};
      spec.evaluation = {.every_steps = 3, .batches = 1};
      return spec;
    case 2:
      spec.network = GptSpec{.layers = 1,
                             .width = 2,
                             .heads = 1,
                             .context = kContext,
                             .vocabulary = kVocabulary,
                             .tied_embeddings = true};
      spec.training.steps = 4;
      spec.training.gradient_clip_norm = 1;
      return spec;
    case 3:
      spec.training.freeze = {"model/0000/*"};
      spec.training.learning_rate = CosineRate{.peak = 0.1, .warmup_steps = 3};
      spec.network = Small({EmbeddingSpec{.dropout = 0.1}, LinearSpec{.out = 3}, ReluSpec{},
                            LinearSpec{.out = kVocabulary, .bias = false}});
      spec.training.optimizer = SgdSpec{.momentum = 0.9};
      spec.training.micro_batches = 3;
      spec.training.steps = 8;
      return spec;
    case 4:
      spec.network = Small({EmbeddingSpec{}, ReluSpec{}, LinearSpec{.out = kVocabulary}});
      spec.training.micro_batches = 1;
      spec.training.steps = 10;
      spec.evaluation = {.every_steps = 5, .batches = 1};
      return spec;
    case 5:
      spec.network = Small({EmbeddingSpec{}, ReluSpec{}, LinearSpec{.out = kVocabulary}});
      spec.training.steps = 0;
      spec.training.epochs = 0.25;
      spec.training.until.loss = 1.66;
      spec.evaluation = {.batches = 2, .every_epochs = 0.08};
      return spec;
    default:
      CHECK(false) << "family " << family;
  }
}

double Scenario::LastHeal() const {
  double last = 0;
  for (const Fault& fault : faults) {
    last = std::max(last, fault.until < Fault::kForever ? fault.until : fault.at);
  }
  return last;
}

Scenario ScenarioOf(uint64_t seed) {
  SeededRandom random(seed ^ 0x5ca1ab1e);
  Scenario scenario;
  scenario.seed = seed;
  scenario.safety = random.Chance(0.1);
  scenario.holds = random.Chance(0.1);
  const StoreForm forms[] = {StoreForm::kFolder, StoreForm::kEmbedded, StoreForm::kBucket};
  scenario.store = random.Of(forms);
  const double paces[] = {1, 3, 10};
  scenario.pace = random.Of(paces);
  const int most_stages = random.From(1, 3);
  scenario.stages = std::max(2, most_stages + random.From(0, 1));
  scenario.jobs.push_back(DrawJob(random, 0, most_stages));
  if (random.Chance(0.1)) scenario.jobs.push_back(DrawJob(random, 1, most_stages));
  // One that was reached before its steps were done goes on with them.
  const bool until = scenario.jobs[0].spec.training.until.given();
  if (random.Chance(0.05) && !until) {
    scenario.jobs.push_back(DrawSuccessor(random, scenario.jobs[0]));
  }
  const bool storm = random.Chance(0.15);
  const int faults = random.Chance(0.02) ? 0 : storm ? random.From(6, 16) : random.From(1, 5);
  double at = random.Between(0, kFirstFault);
  for (int i = 0; i < faults; ++i) {
    scenario.faults.push_back(DrawFault(random, scenario.stages, at, scenario.safety));
    at += random.Between(0, storm ? kMostInStorm : kMostBetween);
  }
  return scenario;
}

Scenario Undisturbed(int family) {
  Scenario scenario;
  scenario.stages = 2;
  scenario.jobs.push_back({"job-0", family, SpecOfFamily(family)});
  scenario.jobs.back().spec.checkpoint = {.every_steps = 1, .keep = 1000};
  return scenario;
}

std::string ScenarioText(const Scenario& scenario) {
  std::string text =
      absl::StrFormat("seed %d, %s, store %s, %d stages, pace %g%s\n", scenario.seed,
                      scenario.safety ? "safety" : "liveness", StoreName(scenario.store),
                      scenario.stages, scenario.pace, scenario.holds ? ", jobs are held" : "");
  for (const ScenarioJob& job : scenario.jobs) {
    absl::StrAppendFormat(
        &text,
        "  %s: family %d, K %d, %s, %s, checkpoint every %d keep %d, snapshot every %d, partition "
        "%s%s, submitted at "
        "%g, cancelled at %g\n",
        job.id, job.family, job.spec.pipeline.stages, job.spec.pipeline.schedule,
        RematerializationName(job.spec.pipeline.rematerialization), job.spec.checkpoint.every_steps,
        job.spec.checkpoint.keep, job.spec.snapshot.every_steps,
        job.spec.pipeline.partition.kind == PartitionSpec::Kind::kAuto ? "auto" : "uniform",
        job.spec.pipeline.continue_with_fewer_stages ? ", fewer stages will do" : "", job.submit_at,
        job.cancel_at);
    if (!job.spec.resume.job.empty()) {
      absl::StrAppend(&text, "    goes on from ", job.spec.resume.job, "\n");
    }
  }
  for (const Fault& fault : scenario.faults) absl::StrAppend(&text, "  ", FaultText(fault), "\n");
  return text;
}

}  // namespace stagecoach
