#include "services/cli/commands/writing/stage_writing.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/numbers/saturate.h"
#include "checkpoint/names.h"
#include "plan/costs/decoding_memory.h"
#include "services/cli/client/follow.h"
#include "services/cli/commands/data_upload.h"
#include "services/cli/commands/follow_command.h"
#include "services/cli/commands/local/local_run.h"
#include "services/cli/commands/weight_options.h"
#include "services/cli/local/scratch_folder.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/output/ndjson.h"
#include "services/cli/output/state_notes.h"
#include "services/cli/output/text.h"
#include "services/cli/trained/writing_job.h"
#include "services/common/convert/spec/convert_spec.h"

namespace stagecoach {
namespace {

namespace fs = std::filesystem;

std::string AbsolutePath(const std::string& path) {
  return fs::absolute(path).lexically_normal().string();
}

// The job that trained the weights, and where stages find them.
struct TrainedJob {
  JobSpec spec;
  std::string weights;  // their name
  WritingJobOptions options;
  std::optional<WeightSource> source;  // keeps what was put together for stages to read
};

// Merged weights are in a temporary folder of this machine, which a cluster's stages do not see.
absl::Status HasAdapters(const std::string& source) {
  return absl::InvalidArgumentError(absl::StrCat(
      source,
      ": has adapters, and a cluster's stages take whole weights: write them with `stagecoach "
      "export --names huggingface --to FOLDER` and name that folder, or leave out --stages"));
}

absl::StatusOr<TrainedJob> FindExport(const StageWritingRequest& request,
                                      const CommandContext& context) {
  ASSIGN_OR_RETURN(FoundWeights found, FindWeights(request.weights, context, request.tokenizer));
  if (!found.source.base().empty() && request.stages.local == 0) {
    return HasAdapters(request.weights.source);
  }
  const std::string file = AbsolutePath(found.source.weights_file()),
                    name = AbsolutePath(found.source.name());
  TrainedJob trained{.spec = std::move(found.spec), .weights = found.source.name()};
  const fs::path folder = fs::is_directory(name) ? fs::path(name) : fs::path(name).parent_path();
  trained.options.name = folder.filename().string();
  trained.options.initialize = {.from = file, .names = found.source.names()};
  trained.source = std::move(found.source);
  return trained;
}

absl::StatusOr<TrainedJob> FindJob(const WeightOptions& weights, const CommandContext& context) {
  const std::string& id = weights.source;
  if (!CheckJobName(id).ok()) {
    return absl::NotFoundError(
        absl::StrCat(id, ": no such file or folder, and no job's id either"));
  }
  const std::string place = absl::StrCat(id, " is no file or folder; as a job's id");
  ASSIGN_OR_RETURN(const std::unique_ptr<JobClient> client,
                   Annotate(context.connect(context.client), place));
  ASSIGN_OR_RETURN(const v1::Job job, Annotate(client->Get(id), place));
  if (job.spec().has_write()) {
    return absl::InvalidArgumentError(
        absl::StrCat("job ", id, ": writes texts and has no weights; name a job that trains"));
  }
  ASSIGN_OR_RETURN(JobSpec spec, Annotate(FromProto(job.spec()), absl::StrCat("job ", id)));
  if (spec.training.lora.given()) return HasAdapters(id);
  TrainedJob trained{.spec = std::move(spec), .weights = id};
  trained.options.name = id;
  trained.options.resume = {.job = id, .step = weights.step, .fresh_optimizer = true};
  return trained;
}

absl::StatusOr<TrainedJob> FindTrained(const StageWritingRequest& request,
                                       const CommandContext& context) {
  const std::string& source = request.weights.source;
  // Processes of this machine read what this command reads: also weights put together from a
  // checkpoint, or exported by the job's own coordinator.
  if (request.stages.local > 0) return FindExport(request, context);
  if (NamesACheckpoint(source)) {
    return absl::InvalidArgumentError(absl::StrCat(
        source,
        ": is a checkpoint, and a cluster's stages take exported weights: export its job "
        "(stagecoach export JOB) and name that folder, name the job's id, or leave out --stages"));
  }
  if (NamesAPath(source)) return FindExport(request, context);
  return FindJob(request.weights, context);
}

UserWords WordsOf(const StageWritingRequest& request) {
  return {.stages = request.stages.local > 0 ? "--local-stages" : "--stages",
          .line = request.word,
          .numbers = request.numbers};
}

// Hands the texts on, and notes what a job waits for.
class WritingSink final : public RecordSink {
 public:
  WritingSink(const StageWriting& writing, const WrittenTextEvents& events, Console* console)
      : local_(writing.request.stages.local > 0),
        words_(WordsOf(writing.request)),
        events_(events),
        console_(console),
        states_(console),
        texts_(writing.job.write().lines_size()) {}

  void OnRecord(const v1::WatchJobResponse& record) override {
    texts_.Take(record.written(), events_);
    if (local_) return;
    if (record.has_state()) {
      v1::StateRecord state = record.state();
      state.set_message(InTheUsersWords(state.message(), words_));
      states_.Show(state);
    }
    if (record.has_recovery()) {
      const std::string& why = record.recovery().message();
      console_->Note(absl::StrCat("recovery: ", InTheUsersWords(why, words_)));
    }
  }
  void OnOutage(const absl::Status& why) override {
    console_->Note(absl::StrCat("no answer (", why.message(), "); trying again"));
  }
  absl::Status CheckWhole(const std::string& job) const { return texts_.CheckWhole(job); }

 private:
  const bool local_;
  const UserWords words_;
  const WrittenTextEvents& events_;
  Console* const console_;
  StateNotes states_;
  WrittenTexts texts_;
};

// 0: of a job that the coordinator refuses with its own words.
int64_t KeyBytesOf(const JobSpec& job) {
  const absl::StatusOr<Network> network = ExpandValidJob(job);
  if (!network.ok()) return 0;
  const DecodingSizes sizes = *DecodingSizesOf(job, *network);
  int64_t bytes = 0;
  for (const int64_t layer : sizes.layers) bytes = SaturatingAdd(bytes, layer);
  return bytes;
}

class WritingRun {
 public:
  WritingRun(const StageWriting& writing, const WrittenTextEvents& events, CommandContext& context)
      : writing_(writing),
        job_(writing.job),
        events_(events),
        context_(context),
        console_(*context.console) {}

  int OnCluster() {
    const absl::StatusOr<std::unique_ptr<JobClient>> client = context_.connect(context_.client);
    if (!client.ok()) return console_.Fail(client.status());
    const absl::Status uploaded =
        UploadDataOf(**client, &job_, context_, {.not_here = writing_.stages_files});
    if (!uploaded.ok()) return console_.Fail(uploaded);
    const absl::Status submitted = Submit(**client, kSubmitPatienceSeconds);
    if (!submitted.ok()) {
      // The answer may be lost, and not the job.
      if (IsPassing(submitted) || context_.stop->requested()) Cancel(**client);
      return console_.Fail(submitted);
    }
    console_.Note(absl::StrCat("job ", id_));
    if (writing_.key_bytes > 0) {
      console_.Note(absl::StrCat("keys and values: at most ", FormatBytes(writing_.key_bytes),
                                 " on all stages together"));
    }
    return Follow(**client);
  }

  int OnThisMachine() {
    const absl::StatusOr<std::unique_ptr<ScratchFolder>> folder = ScratchFolder::Make("write");
    if (!folder.ok()) return console_.Fail(folder.status());
    const int code = InFolder((*folder)->path());
    // Errors about a process name its log.
    const absl::Status reason = context_.stop->reason();
    if (!began_ || (!reason.ok() && !absl::IsCancelled(reason) && !absl::IsAborted(reason))) {
      (*folder)->Keep();
      console_.Note(absl::StrCat("the cluster's files are kept in ", (*folder)->path()));
    }
    return code;
  }

 private:
  int InFolder(const std::string& folder) {
    const int64_t stages = writing_.request.stages.local,
                  threads = writing_.request.weights.threads;
    const std::string command = writing_.job.write().has_translate() ? "translate" : "generate";
    LocalClusterFlags flags;
    if (threads > 0) flags.threads_per_stage = std::max<int64_t>(1, threads / stages);
    const absl::StatusOr<std::unique_ptr<LocalRun>> run = LocalRun::Start(
        {.command = command, .state_folder = folder, .quiet = true}, flags, context_);
    began_ = run.ok() || absl::IsCancelled(run.status());
    if (!run.ok()) return console_.Fail(run.status());
    const absl::Status submitted = Submit((*run)->client(), kStartPatienceSeconds);
    if (!submitted.ok()) return console_.Fail(submitted);
    (*run)->StartStages(writing_.job);
    const int code = Follow((*run)->client());
    (*run)->Stop();
    return code;
  }

  absl::Status Submit(JobClient& client, double patience_seconds) {
    const absl::Status status =
        SubmitPatiently(client, id_, job_, patience_seconds, context_.stop).status();
    return absl::Status(status.code(), InTheUsersWords(status.message(), words_));
  }

  int Follow(JobClient& client) {
    WritingSink sink(writing_, events_, &console_);
    const absl::StatusOr<v1::WatchJobResponse> last =
        FollowJob(client, id_, FollowOptions(), sink, context_.stop);
    if (!last.ok()) {
      Cancel(client);
      return console_.Fail(last.status());
    }
    const v1::FinishedRecord& finished = last->finished();
    if (finished.state() == v1::JOB_STATE_SUCCEEDED) {
      const absl::Status whole = sink.CheckWhole(id_);
      return whole.ok() ? static_cast<int>(kExitSuccess) : console_.Fail(whole);
    }
    console_.Note(absl::StrCat("stagecoach: job ", id_, ": ",
                               finished.message().empty()
                                   ? StateName(finished.state())
                                   : InTheUsersWords(finished.message(), words_)));
    return ExitCodeOf(finished.state());
  }

  // Nobody reads what it would still write.
  void Cancel(JobClient& client) {
    const absl::Status cancelled = client.Cancel(id_).status();
    // A cluster of this command ends with it.
    if (cancelled.ok() || writing_.request.stages.local > 0) return;
    if (absl::IsNotFound(cancelled)) return;  // it was not taken
    console_.Note(absl::StrCat("job ", id_, " may go on (", cancelled.message(),
                               "); to end it:  stagecoach cancel ", id_));
  }

  const StageWriting& writing_;
  v1::JobSpec job_;  // with the places of its files in the cluster
  const WrittenTextEvents& events_;
  CommandContext& context_;
  Console& console_;
  bool began_ = false;  // the cluster on this machine
  const UserWords words_ = WordsOf(writing_.request);
  const std::string id_ = MakeJobId(writing_.job.name());
};

}  // namespace

absl::StatusOr<StageWriting> PrepareStageWriting(StageWritingRequest request,
                                                 CommandContext& context) {
  ASSIGN_OR_RETURN(TrainedJob trained, FindTrained(request, context));
  const Writes writes = request.write.translate.has_value() ? Writes::kTranslations : Writes::kText;
  RETURN_IF_ERROR(NetworkThatWrites(writes, trained.spec).status());
  if (request.check) RETURN_IF_ERROR(request.check(trained.spec));
  if (request.stages.local > 0) {
    RETURN_IF_ERROR(TokenizerOfJob(trained.spec, request.tokenizer).status());
  }
  WritingJobOptions& options = trained.options;
  if (!request.tokenizer.empty()) options.tokenizer = AbsolutePath(request.tokenizer);
  options.stages = std::max(request.stages.cluster, request.stages.local);
  options.group_lines = request.group_lines;
  options.seed = request.seed;
  options.precision = request.weights.precision;
  options.write = request.write;
  ASSIGN_OR_RETURN(const JobSpec job, MakeWritingJob(std::move(trained.spec), options));
  // The one that the job had is its cluster's own, unless it trained here.
  std::set<std::string> stages_files;
  const std::string tokenizer = TokenizerPathOf(job.data);
  const bool trained_there = !trained.options.resume.job.empty();
  if (request.tokenizer.empty() && (trained_there || !NamesAPath(tokenizer))) {
    stages_files.insert(tokenizer);
  }
  return StageWriting{std::move(request), std::move(trained.weights),
                      ToProto(job),       std::move(trained.source),
                      KeyBytesOf(job),    std::move(stages_files)};
}

int RunStageWriting(const StageWriting& writing, const WrittenTextEvents& events,
                    CommandContext& context) {
  WritingRun run(writing, events, context);
  return writing.request.stages.local > 0 ? run.OnThisMachine() : run.OnCluster();
}

}  // namespace stagecoach
