#include <algorithm>
#include <iterator>
#include <limits>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/errors/check.h"
#include "coordinator/job/job_script_testing.h"
#include "coordinator/job/resume_check.h"
#include "network/network_kinds.h"
#include "network/objectives/cross_entropy.h"
#include "network/zoo/gpt.h"
#include "network/zoo/transformer.h"
#include "plan/data/parallel_text.h"
#include "plan/data/text.h"
#include "plan/job/optimizer_slots.h"
#include "scores/corpus_counts.h"

namespace stagecoach {
namespace {

std::string Quoted(const std::string& text) { return absl::StrCat("\"", text, "\""); }

struct ActionText {
  std::string operator()(const SendLoad& a) const {
    return absl::StrCat("load stage=", a.stage, " at=", a.to.address,
                        " step=", a.command.fence.step,
                        " from=", Quoted(a.command.checkpoint_folder),
                        " downstream=", Quoted(a.command.neighbours.at(0).downstream_address), SnapshotText(a));
  }
  static std::string SnapshotText(const SendLoad& a) {
    const SnapshotPlan& plan = a.command.snapshot;
    std::string text;
    if (!plan.key.empty()) absl::StrAppend(&text, " copy_at=", Quoted(plan.replica_address));
    for (const SnapshotPlan::Holder& holder : plan.holders) {
      absl::StrAppend(&text, " ", holder.file, "@", holder.address);
    }
    return text;
  }
  std::string operator()(const ProbeFolder& a) const {
    return absl::StrCat("probe_folder step=", a.fence.step, " bytes=", a.bytes);
  }
  std::string operator()(const CheckFolder& a) const {
    return absl::StrCat("check_folder folder=", a.probe.folder, " secret=", a.probe.secret,
                        " stages=", absl::StrJoin(a.stages, ","));
  }
  std::string operator()(const SendRun& a) const {
    static constexpr const char* kWork[] = {"nothing", "train", "evaluate", "translate", "write"};
    std::string text =
        absl::StrCat("run stage=", a.stage, " ", kWork[static_cast<int>(a.command.work)],
                     " step=", a.command.fence.step);
    if (!a.command.snapshot.empty()) absl::StrAppend(&text, " snapshot");
    if (a.command.snapshot_kept > 0) absl::StrAppend(&text, " kept=", a.command.snapshot_kept);
    if (a.command.snapshot_kept > 0 && a.command.snapshot_of_load) absl::StrAppend(&text, "(load)");
    if (a.command.work == WorkKind::kEvaluate || a.command.work == WorkKind::kTranslate) {
      absl::StrAppend(&text, " batch=", a.command.evaluation_batch,
                      a.command.average ? " average" : "");
    }
    if (a.command.work == WorkKind::kWrite) {
      absl::StrAppend(&text, " batch=", a.command.evaluation_batch, " rounds=", a.command.rounds,
                      a.command.goes_on ? " goes on" : "");
    }
    if (a.command.copy_shard) text += " copy";
    if (!a.command.apply.has_value()) return text;
    return absl::StrCat(text, a.command.apply->apply ? " apply=" : " skip=", a.command.apply->step);
  }
  std::string operator()(const SendWriteShard& a) const {
    return absl::StrCat("write_shard stage=", a.stage, " step=", a.command.fence.step,
                        " folder=", a.command.folder,
                        a.command.snapshot_files.empty() ? "" : " from memory: ",
                        absl::StrJoin(a.command.snapshot_files, " "));
  }
  std::string operator()(const SendFindSnapshots& a) const {
    return absl::StrCat("find_snapshots stage=", a.stage, " at=", a.to.address);
  }
  std::string operator()(const SendProfile& a) const { return "profile at=" + a.to.address; }
  std::string operator()(const MakeJobPlan& a) const {
    return absl::StrCat("plan stages=", a.assumptions.cards.size());
  }
  std::string operator()(const SendAbort& a) const {
    return absl::StrCat("abort at=", a.to.address, " generation=", a.fence.generation);
  }
  std::string operator()(const SendRelease& a) const {
    return absl::StrCat("release at=", a.to.address, " generation=", a.fence.generation);
  }
  std::string operator()(const DoubtStage& a) const { return "doubt " + a.name; }
  std::string operator()(const NoteFolder& a) const {
    std::string text = a.sees ? "with the folder:" : "without the folder:";
    for (const StageProcess& stage : a.stages) absl::StrAppend(&text, " ", stage.name);
    return text;
  }
  std::string operator()(const SearchCheckpoint& a) const {
    return absl::StrCat("search_checkpoint job=", a.job, " step=", a.step);
  }
  std::string operator()(const BeginCheckpoint& a) const {
    return absl::StrCat("begin_checkpoint step=", a.fence.step, " bytes=", a.bytes);
  }
  std::string operator()(const CommitCheckpoint& a) const {
    return absl::StrCat("commit_checkpoint step=", a.manifest.state.step, " folder=", a.folder,
                        " shards=", a.manifest.shards.size(), " tensors=", a.expected.size(),
                        a.keep == kKeepAll ? " keep=all" : "");
  }
  std::string operator()(const AbandonCheckpoint& a) const { return "abandon " + a.folder; }
  std::string operator()(const ExportCheckpoint& a) const {
    return absl::StrCat("export step=", a.ref.step, " keep=", a.keep);
  }
};

std::string RecordText(const JobRecord& record) {
  static constexpr const char* kKinds[] = {"state",    "step",     "evaluation", "checkpoint",
                                           "recovery", "finished", "written"};
  std::string text = absl::StrCat("record ", record.number, " ",
                                  kKinds[static_cast<int>(record.kind)], " step=", record.step);
  if (record.kind == JobRecord::Kind::kState || record.kind == JobRecord::Kind::kFinished) {
    absl::StrAppend(&text, " ", JobPhaseName(record.phase));
  }
  if (record.kind == JobRecord::Kind::kStep) {
    absl::StrAppendFormat(&text, " loss=%g norm=%g%s", record.loss, record.gradient_norm,
                          record.skipped ? " skipped" : "");
  }
  if (record.kind == JobRecord::Kind::kEvaluation) {
    absl::StrAppendFormat(&text, " loss=%g", record.loss);
  }
  for (const Measure& measure : record.measures) {
    absl::StrAppendFormat(&text, " %s=%g", measure.name, measure.value);
  }
  for (const WrittenPiece& piece : record.written) {
    absl::StrAppend(&text, " ", piece.line, "@", piece.offset, "=", Quoted(piece.text),
                    piece.done ? " done" : "");
  }
  return record.message.empty() ? text : absl::StrCat(text, " ", Quoted(record.message));
}

using Options = std::map<std::string, std::string>;

Options OptionsOf(const std::vector<std::string>& words) {
  Options options;
  for (const std::string& word : words) {
    const std::vector<std::string> parts = absl::StrSplit(word, absl::MaxSplits('=', 1));
    if (parts.size() == 2) options[parts[0]] = parts[1];
  }
  return options;
}

// Of the words like "a:1".
std::vector<StageRegistration> RegistrationsOf(const std::vector<std::string>& words) {
  std::vector<StageRegistration> registrations;
  for (const std::string& word : words) {
    const std::vector<std::string> parts = absl::StrSplit(word, ':');
    if (parts.size() != 2) continue;
    StageRegistration& registration = registrations.emplace_back();
    registration.name = parts[0];
    registration.incarnation = parts[1];
    registration.address = parts[0] + ":8101";
  }
  return registrations;
}

int Number(const Options& options, const std::string& name, int otherwise) {
  const auto found = options.find(name);
  return found == options.end() ? otherwise : std::stoi(found->second);
}

// "" is ok.
absl::Status StatusOf(const std::string& code) {
  if (code.empty()) return absl::OkStatus();
  for (int i = 1; i <= 16; ++i) {
    const auto candidate = static_cast<absl::StatusCode>(i);
    if (absl::StatusCodeToString(candidate) == code) return absl::Status(candidate, "told so");
  }
  CHECK(false) << "no status is called " << code;
}

template <typename T>
absl::StatusOr<T> Answer(const std::string& code, T value) {
  if (absl::Status status = StatusOf(code); !status.ok()) return status;
  return value;
}

}  // namespace

static std::string BesideText(const JobState& state) {
  const auto& beside = state.checkpoints.writing.beside;
  if (!beside.has_value()) return "";
  return absl::StrCat(" beside=", beside->fence.step, "/", ActivityName(beside->at));
}

std::string StateText(const JobState& state) {
  return absl::StrCat(JobPhaseName(state.phase), "/", ActivityName(state.activity),
                      state.term > 1 ? absl::StrCat(" term=", state.term) : "",
                      " generation=", state.generation, " step=", state.step,
                      " stages=", state.slots.size(), " committed=", state.checkpoints.last.step,
                      BesideText(state));
}

void JobScript::NewJob(const Words& words) {
  const Options options = OptionsOf(words);
  auto job = std::make_shared<JobDefinition>();
  job->id = "a";
  JobSpec& spec = job->spec;
  spec.name = "a";
  spec.network = GptSpec{.layers = 1, .width = 4, .heads = 2, .context = 4, .vocabulary = 8};
  spec.data = TextData{.path = "x"};
  spec.training.epochs = Number(options, "epochs", 0);
  if (spec.training.epochs == 0) spec.training.steps = Number(options, "steps", 4);
  spec.training.until.loss = Number(options, "until", 0);
  if (options.contains("average")) spec.training.average.decay = 0.9;
  spec.training.batch_size = 4;
  spec.training.micro_batches = 2;
  spec.training.max_nonfinite_steps = Number(options, "nonfinite", 2);
  spec.pipeline.stages = Number(options, "stages", 2);
  spec.pipeline.min_stages = Number(options, "min", 0);
  spec.pipeline.replacement_timeout_seconds = 30;
  spec.pipeline.continue_with_fewer_stages = Number(options, "fewer", 0) != 0;
  if (!options.contains("profile")) {
    spec.pipeline.partition.kind = PartitionSpec::Kind::kUniform;
  }
  spec.checkpoint.every_epochs = spec.evaluation.every_epochs = Number(options, "each", 0);
  if (spec.checkpoint.every_epochs == 0) {
    spec.checkpoint.every_steps = Number(options, "checkpoint", 2);
    spec.evaluation.every_steps = Number(options, "evaluation", 0);
  }
  spec.evaluation.batches = 2;
  if (options.contains("translate")) {
    spec.network = TransformerSpec{.vocabulary = 8,
                                   .source_context = 4,
                                   .target_context = 8,
                                   .width = 4,
                                   .hidden = 4,
                                   .heads = 2,
                                   .encoder_layers = 1,
                                   .decoder_layers = 1};
    spec.network.objective = CrossEntropySpec{.ignore_index = 0};
    ParallelTextData data;
    data.tokenizer = data.sources.emplace_back(data.targets.emplace_back("/data/pairs"));
    spec.data = data;
    spec.evaluation.translate = TranslateSpec{.batches = Number(options, "translate", 0)};
  }
  const bool automatic = options.contains("snapshots") && options.at("snapshots") == "auto";
  spec.snapshot.every_steps = automatic ? 0 : Number(options, "snapshots", 0);
  spec.snapshot.never = !automatic && spec.snapshot.every_steps == 0;
  snapshot_cost_ = options.contains("cost") ? std::stod(options.at("cost")) : 0;
  snapshots_stay_ = Number(options, "stay", 0) != 0;
  if (options.contains("resume")) spec.resume.job = options.at("resume");
  if (options.contains("classes")) {
    spec.network.objective = CrossEntropySpec{.mean_iou = true, .per_class = true};
  }
  spec.training.until.bleu = options.contains("bleu") ? std::stod(options.at("bleu")) : 0;
  spec.training.until.mean_iou = options.contains("iou") ? std::stod(options.at("iou")) : 0;
  job->network = ExpandNetwork(spec.network).value();
  job->model_sha256 = ModelSha256(job->network);
  if (options.contains("write")) {
    spec.write = WriteSpec{.generate = GenerateSpec{}};
    if (spec.resume.job.empty()) spec.initialize.from = "/weights";
    for (int i = 0; i < Number(options, "write", 0); ++i) {
      spec.write->lines.push_back(absl::StrCat("line ", i));
    }
  }
  state_ = NewJobState(job, 1, JobLimits{});
  tells_folder_ = Number(options, "probe", 0) != 0;
  now_ = 0;
  tick_ = options.contains("tick") ? std::stod(options.at("tick")) : 0.125;
  written_ = 0;
  signs_ = DeadlinePassed{};
  stale_ = late_ = false;
  hold_plans_ = Number(options, "hold", 0) != 0;
}

// Of a checkpoint beside the steps, if one is under way.
Fence JobScript::WriteFence() {
  const auto& beside = state_->checkpoints.writing.beside;
  return EventFence(beside.has_value() ? beside->fence : FenceOf(*state_));
}

Fence JobScript::EventFence() { return EventFence(FenceOf(*state_)); }

Fence JobScript::EventFence(Fence fence) {
  if (std::exchange(stale_, false)) --fence.attempt;
  if (std::exchange(late_, false)) --fence.generation;
  return fence;
}

// Transcripts of something else do without the question about the folder: it is answered at once,
// by a folder without a name, so that nothing is checked later.
void JobScript::AnswerProbe(Transition* transition) const {
  if (transition->state.activity != Activity::kProbeFolder) return;
  transition->actions.pop_back();
  const FolderProbed probed{FenceOf(transition->state), FolderProbe{}};
  Transition next =
      stagecoach::Apply(transition->state, {state_->job->id, {now_, 1e9 + now_}, probed}).value();
  transition->state = std::move(next.state);
  std::move(next.records.begin(), next.records.end(), std::back_inserter(transition->records));
  std::move(next.actions.begin(), next.actions.end(), std::back_inserter(transition->actions));
}

std::string JobScript::Apply(const decltype(JobEvent::kind)& kind) {
  absl::StatusOr<Transition> transition =
      stagecoach::Apply(*state_, {state_->job->id, {now_, 1e9 + now_}, kind});
  CHECK(transition.ok()) << transition.status();
  if (!tells_folder_) AnswerProbe(&*transition);
  const std::string before = StateText(*state_);
  const std::string after = StateText(transition->state);
  std::string text;
  if (before != after) {
    text = absl::StrCat(before, "\n  -> ", after, "\n");
  } else if (transition->state.stale_events > state_->stale_events) {
    text = absl::StrCat("unchanged; stale events: ", transition->state.stale_events, "\n");
  } else {
    text = absl::StrCat(after, "\n");
  }
  for (const JobRecord& record : transition->records) {
    absl::StrAppend(&text, RecordText(record), "\n");
  }
  for (const JobAction& action : transition->actions) {
    absl::StrAppend(&text, std::visit(ActionText{}, action), "\n");
  }
  state_ = transition->state;
  for (const JobAction& action : transition->actions) {
    const auto* const plan = std::get_if<MakeJobPlan>(&action);
    if (plan == nullptr) continue;
    if (hold_plans_) {
      held_plan_ = *plan;
    } else {
      absl::StrAppend(&text, Apply(Planned{plan->fence, RunPlan(*plan)}));
    }
  }
  return text;
}

// Of training as the script's jobs do it.
HeldShard JobScript::HeldShardOf(uint64_t step, int first, int last) const {
  HeldShard held{.step = step, .layers = {{first, last}}};
  Manifest manifest{.job = "a", .model_sha256 = state_->job->model_sha256};
  manifest.state = {.step = step, .batch_size = 4, .micro_batches = 2, .last_loss = 2};
  held.manifest = FormatManifest(manifest);
  held.info = {.file = ShardFileName({{first, last}}), .bytes = 9, .sha256 = std::string(64, '0')};
  for (int layer = first; layer < last; ++layer) {
    for (const ParameterSpec& parameter : state_->job->network.layers[layer].parameters) {
      for (const OptimizerState& kept :
           OptimizerStates(state_->job->spec.training.optimizer, parameter.shape)) {
        ShardTensor tensor{.sha256 = std::string(64, '0')};
        tensor.entry.name = SlotTensorName(kept.slot, parameter.name);
        held.info.tensors.push_back(tensor);
      }
    }
  }
  return held;
}

// Of the mini-batch at hand: two more bytes of its first line. The others have no text.
std::vector<WrittenPiece> JobScript::Pieces(const std::string& how) {
  if (!state_->writing.goes_on) written_ = 0;
  if (how == "silent" || how == "end") return {};
  const int64_t first = 4 * static_cast<int64_t>(state_->step);
  const bool done = how == "over" || how == "done";
  std::vector<WrittenPiece> pieces = {{.line = first, .offset = written_, .text = "ab"}};
  if (how == "stray") pieces[0].line = first + 4;
  written_ += std::ssize(pieces[0].text);
  pieces[0].done = done;
  pieces[0].tokens = done ? 8 : 0;
  const int64_t lines = std::ssize(state_->job->spec.write->lines);
  for (int64_t line = first + 1; done && line < std::min(first + 4, lines); ++line) {
    pieces.push_back({.line = line, .done = true});
  }
  return pieces;
}

std::string JobScript::All(const std::string& how) {
  const Activity activity = state_->activity;
  if (how == "shards") {
    std::string text;
    for (size_t k = 0; k < state_->slots.size(); ++k) text = Run(absl::StrCat("shard ", k));
    return text;
  }
  const char* command = activity == Activity::kLoad          ? "loaded"
                        : activity == Activity::kWriteShards ? "shard"
                                                             : "reported";
  std::string text;
  const int stages = static_cast<int>(state_->slots.size());
  for (int k = 0; k < stages; ++k)
    text = Run(absl::StrCat(command, " ", k, " ", how));  // the last one tells
  return text;
}

std::string JobScript::Run(const std::string& line) {
  const Words words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  if (words.empty()) return "";
  const std::string& verb = words[0];
  const Options options = OptionsOf(words);
  const std::string second = words.size() > 1 ? words[1] : "";
  const std::string third = words.size() > 2 ? words[2] : "";
  const auto stage = [&] { return std::stoi(second); };
  if (verb == "job") return NewJob(words), absl::StrCat(StateText(*state_), "\n");
  if (verb == "stale") return stale_ = true, "";
  if (verb == "late") return late_ = true, "";
  if (verb == "all") return All(second);
  if (verb == "wait") {
    now_ += std::stod(second);
    const double deadline = NextDeadline(*state_);
    if (deadline == 0 || now_ < deadline) return "nothing is due\n";
    signs_.stages["b"].waiting_for = "activation of micro-batch 1";
    signs_.heard_seconds = now_;
    return Apply(signs_);
  }
  if (verb == "moves") {
    (second == "effect" ? signs_.effect_moved_seconds : signs_.stages[second].moved_seconds) = now_;
    return "";
  }
  if (verb == "writes") return signs_.stages[second].wrote_seconds = now_, "";
  now_ += tick_;  // every event a little later; exact in binary
  if (verb == "open") return Apply(JobOpened{1, false});
  if (verb == "restart") return Apply(JobOpened{uint64_t(Number(options, "term", 2)), true});
  if (verb == "save") return Apply(SaveRequested{});
  if (verb == "cancel") return Apply(CancelRequested{});
  if (verb == "term") return Apply(TermRaised{uint64_t(stage()), "a stage knew a higher term"});
  if (verb == "died") {
    const Fence fence{.job = state_->job->id,
                      .term = uint64_t(Number(options, "term", 1)),
                      .generation = uint64_t(Number(options, "generation", 1)),
                      .step = uint64_t(Number(options, "step", 0))};
    return Apply(
        StageDied{second, {third, fence, MicroBatchId(0), options.at("instruction"), "linear"}});
  }
  if (verb == "lost") return Apply(StageLost{second, third, "stage " + second + " is gone"});
  if (verb == "short") {
    return Apply(StagesShort{Number(options, "needed", 2),
                             Number(options, "ready", 1),
                             Number(options, "alive", 1),
                             {},
                             RegistrationsOf(words)});
  }
  if (verb == "offer") {
    return Apply(StagesOffered{RegistrationsOf(words), {}});
  }
  if (verb == "found") {
    CheckpointSearched searched{EventFence(), absl::NotFoundError("none"), {}};
    if (second == "error") searched.found = absl::DataLossError("told so");
    if (second == "unmounted") searched.has_folder = false;
    if (second == "away") searched.found = absl::UnavailableError("the disk is away");
    if (options.contains("step")) {
      const std::string job = options.contains("job") ? options.at("job") : "a";
      FoundCheckpoint found{{job, uint64_t(Number(options, "step", 0)), "/c/" + second}, {}};
      found.manifest.job = job;
      found.manifest.model_sha256 = state_->job->model_sha256;
      found.manifest.state = {.step = found.ref.step, .batch_size = 4, .micro_batches = 2};
      ShardInfo& shard = found.manifest.shards.emplace_back();
      for (const NetworkLayer& layer : state_->job->network.layers) {
        for (const ParameterSpec& parameter : layer.parameters) {
          for (const OptimizerState& kept :
               OptimizerStates(state_->job->spec.training.optimizer, parameter.shape)) {
            shard.tensors.emplace_back().entry.name = SlotTensorName(kept.slot, parameter.name);
          }
        }
      }
      searched.found = found;
    }
    return Apply(searched);
  }
  if (verb == "held") {
    std::vector<HeldShard> held;
    for (size_t i = 2; third != "old" && i < words.size(); ++i) {
      std::vector<std::string> parts = absl::StrSplit(words[i], absl::ByAnyChar(":-"));
      CHECK_EQ(parts.size(), 3u) << words[i];
      held.push_back(HeldShardOf(std::stoull(parts[0]), std::stoi(parts[1]), std::stoi(parts[2])));
    }
    const absl::StatusOr<std::vector<HeldShard>> none = absl::UnimplementedError("an older stage");
    return Apply(SnapshotsFound{EventFence(), stage(), third == "old" ? none : held});
  }
  if (verb == "profiled") {
    return Apply(Profiled{EventFence(),
                          Answer(second, std::vector<LayerProfile>(5, LayerProfile{1e-3, 2e-3}))});
  }
  if (verb == "planned") return Apply(Planned{EventFence(), RunPlan(*held_plan_)});
  if (verb == "probed") {
    return Apply(FolderProbed{EventFence(), Answer(second, FolderProbe{"/t/probe", "secret"})});
  }
  if (verb == "checked") {
    FolderChecked checked{EventFence(), {}};
    if (options.contains("fault"))
      checked.faults[Number(options, "fault", 0)] = StatusOf("NOT_FOUND");
    return Apply(checked);
  }
  if (verb == "loaded") {
    LoadResult result;
    result.data = {100, "d", 10, 6};
    result.fingerprint = options.contains("fingerprint") ? options.at("fingerprint") : "f";
    result.folder_answered = true;
    result.snapshots = true;
    if (state_->job->spec.initialize.given()) {
      result.weights = {.header_sha256 = "h", .tensors = 1, .read = {{"w", "F32", "[1]", "s"}}};
    }
    if (options.contains("folder")) result.folder = StatusOf(options.at("folder"));
    if (options.contains("notes")) {
      result.data_notes = absl::StrSplit(options.at("notes"), ',');
    }
    const bool answered =
        options.contains("fingerprint") || options.contains("folder") || options.contains("notes");
    const std::string code = answered ? "" : third;
    return Apply(Loaded{EventFence(), stage(), Answer(code, result)});
  }
  if (verb == "reported") {
    static const std::set<std::string> kReports = {"nan",   "empty", "otherwise", "uncounted",
                                                   "over",  "done",  "end",       "silent",
                                                   "stray", "copied"};
    StepReport report;
    report.applied = state_->pending;
    if (third == "otherwise") report.applied->learning_rate *= 2;
    report.has_loss = stage() + 1 == static_cast<int>(state_->slots.size());
    report.loss_sum = 32;
    report.targets = report.has_loss ? 16 : 0;
    report.terms = 16;
    report.shard_copied = third == "copied";
    report.finite = third != "nan";
    if (third == "nan") report.loss_sum = std::numeric_limits<double>::quiet_NaN();
    if (third == "empty") report.terms = report.loss_sum = 0;
    if (!snapshots_stay_) report.snapshot.whole_step = state_->snapshots.load.taken_step;
    report.snapshot.seconds = snapshot_cost_;
    report.snapshot.busy = snapshots_stay_ && state_->snapshots.load.taken_step.has_value();
    if (report.has_loss && state_->job->network.objective.has("mean_iou")) {
      const bool first = state_->evaluation.half.batch == 0;
      report.class_counts = first ? std::vector<ClassCounts>{{1, 4, 2}, {1, 1, 3}, {0, 0, 0}}
                                  : std::vector<ClassCounts>{{3, 4, 4}, {0, 0, 0}, {0, 0, 0}};
    }
    const JobEvaluation& evaluation = state_->evaluation;
    if (report.has_loss && state_->activity == Activity::kEvaluate &&
        evaluation.half.batch == evaluation.batches && third != "uncounted") {
      report.translation_counts = CountSegment("a b c d e", "a b c d f").Numbers();
    }
    if (report.has_loss && state_->activity == Activity::kWrite) {
      report.written = Pieces(third);
      report.write_over = third == "over" || third == "end";
    }
    if (state_->activity == Activity::kTrain && stage() < static_cast<int>(state_->slots.size())) {
      const StageSlot& slot = state_->slots[stage()];
      report.layer_squared_norms.assign(size_t(slot.cells[0].last - slot.cells[0].first), 0.2);
    }
    return Apply(
        Reported{EventFence(), stage(), Answer(kReports.contains(third) ? "" : third, report)});
  }
  if (verb == "begun")
    return Apply(CheckpointBegun{WriteFence(), Answer<std::string>(second, "/t")});
  if (verb == "shard") {
    ShardInfo shard;
    shard.file = absl::StrCat("shard-", second);
    return Apply(ShardWritten{WriteFence(), stage(), Answer(third, shard)});
  }
  if (verb == "committed") {
    const Fence fence = WriteFence();
    CheckpointRef ref{"a", fence.step, absl::StrCat("/c/step=", fence.step)};
    return Apply(CheckpointCommitted{fence, Answer(second, ref)});
  }
  if (verb == "exported") {
    return Apply(WeightsExported{EventFence(), Answer(second, ExportedWeights{"sha256:x", "/e"})});
  }
  CHECK(false) << "the script does not know: " << line;
}

}  // namespace stagecoach
