#include "services/cli/commands/local/local_run.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/threads/clock.h"
#include "checkpoint/files/file_system.h"
#include "checkpoint/names.h"
#include "checkpoint/store/store.h"
#include "checkpoint/weight_index.h"
#include "services/cli/client/follow.h"
#include "services/cli/commands/follow_command.h"
#include "services/cli/commands/local/what_next.h"
#include "services/cli/commands/save_trace.h"
#include "services/cli/local/spawn.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/output/job_output.h"
#include "services/cli/output/ndjson.h"
#include "services/cli/spec/data_check.h"
#include "services/common/convert/spec/convert_spec.h"
#include "stage/tokens/tokenizer.h"

namespace stagecoach {
namespace {

constexpr uint32_t kTracedSteps = 5;
constexpr double kWaitNoteSeconds = 30;

// The stages remember a job that ended; with the cluster that memory goes.
void TraceAtEnd(JobClient& client, const std::string& id, const std::string& file,
                CommandContext& context) {
  if (file.empty() || context.stop->requested()) return;
  const absl::Status saved =
      SaveTrace(client, id, /*steps=*/kTracedSteps, file, context.console).status();
  // The job's result is what the exit code tells.
  if (!saved.ok()) context.console->Note(absl::StrCat("stagecoach: no trace: ", saved.ToString()));
}

// The files and folders that the user's job names, and what the user names beside.
std::vector<std::string> DataRootsOf(const v1::JobSpec& spec, std::vector<std::string> roots) {
  if (const std::string& from = spec.initialize().from(); !from.empty()) {
    roots.push_back(from);
    // In a cache of downloads the files are links that lead out of the folder.
    const absl::StatusOr<std::vector<std::string>> names = PosixFileSystem()->List(from);
    for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
      const bool weights = name.ends_with(".safetensors") || name == kWeightIndexFile;
      const std::string inside = JoinPath(from, name);
      if (weights && PosixFileSystem()->IsLink(inside)) roots.push_back(inside);
    }
  }
  const absl::StatusOr<DataSpec> data = DataFromProto(spec.data());
  if (!data.ok()) return roots;  // whoever takes the job says why
  for (const DataFile& file : FilesRead(*data, spec.has_write())) {
    roots.push_back(file.path);
    if (file.field != "tokenizer") continue;
    const std::string config = TokenizerConfigPath(file.path);
    if (PosixFileSystem()->Exists(config)) roots.push_back(config);
  }
  return roots;
}

std::optional<uint64_t> NewestCheckpoint(const std::string& state_folder, const std::string& job) {
  CheckpointStore store(PosixFileSystem(), CheckpointFolder(state_folder));
  const std::vector<CheckpointRef> checkpoints = store.List(job);
  if (checkpoints.empty()) return std::nullopt;
  return checkpoints.front().step;
}

}  // namespace

absl::Status LocalRun::Reason(const absl::Status& status, const CommandContext& context) {
  return context.stop->requested() ? context.stop->reason() : status;
}

absl::StatusOr<std::unique_ptr<LocalRun>> LocalRun::Start(const LocalRunOptions& options,
                                                          const LocalClusterFlags& flags,
                                                          CommandContext& context) {
  LocalClusterOptions cluster_options;
  cluster_options.program_folder = ProgramFolder();
  cluster_options.state_folder = options.state_folder;
  cluster_options.holder = absl::StrCat("stagecoach ", options.command);
  cluster_options.devices = flags.devices;
  cluster_options.memory_per_stage = flags.memory_per_stage;
  cluster_options.shown_runs = options.shown_runs;
  cluster_options.on_failure = [stop = context.stop](const absl::Status& why) {
    stop->Request(why);
  };
  cluster_options.on_note = [console = context.console](const std::string& note) {
    console->Note(note);
  };
  std::unique_ptr<LocalRun> run(new LocalRun(options, flags, context));
  run->Note(absl::StrCat("state    ", options.state_folder));
  absl::StatusOr<std::unique_ptr<LocalCluster>> cluster = LocalCluster::Start(cluster_options);
  if (!cluster.ok()) return Reason(cluster.status(), context);
  run->cluster_ = *std::move(cluster);
  run->Note(absl::StrCat("address  ", run->cluster_->address()));
  run->Note(absl::StrCat("page     http://", run->cluster_->http_address(), "/  (and /metrics)"));
  ClientOptions client_options;  // loopback: of the cluster that flags or profile name, nothing
  client_options.address = run->cluster_->address();
  client_options.timeout_seconds = context.client.timeout_seconds;
  absl::StatusOr<std::unique_ptr<JobClient>> client = context.connect(client_options);
  if (!client.ok()) return client.status();
  run->client_ = *std::move(client);
  return run;
}

void LocalRun::StartStages(const v1::JobSpec& spec) {
  const int stages = static_cast<int>(spec.pipeline().stages());
  const int threads = flags_.threads_per_stage > 0 ? static_cast<int>(flags_.threads_per_stage)
                                                   : DefaultThreadsPerStage(stages, flags_.devices);
  Note(absl::StrCat("stages   ", stages, " on device ", absl::StrJoin(flags_.devices, ","),
                    ", threads each: ", threads));
  cluster_->StartStages(stages, threads, DataRootsOf(spec, flags_.data_roots));
}

int LocalRun::Follow(const StartedJob& started, const std::string& trace_file) {
  const v1::Job& job = started.job;
  StartStages(job.spec());
  const int code = FollowAndReport(*client_, job, /*quiet=*/false, context_, started.after);
  TraceAtEnd(*client_, job.id(), trace_file, context_);
  // A process that cannot be kept alive is no interruption: there is nobody to write a checkpoint.
  const absl::Status reason = context_.stop->reason();
  const absl::StatusOr<v1::Job> now = client_->Get(job.id());
  const bool over = now.ok() && IsTerminal(now->state());  // nothing was interrupted
  Disconnect();
  // The same if the coordinator has not everything on disk: what it would do next ends here.
  const bool unfinished = reason.ok() && now.ok();
  if (!over && (unfinished || absl::IsCancelled(reason) || absl::IsAborted(reason))) {
    SaveAndSayHowToGoOn(job);
  }
  if (over && !reason.ok()) {
    context_.console->Note(
        absl::StrCat("job ", job.id(), " had ended as ", StateName(now->state()), " by then"));
  }
  Stop();
  // What failed ends with its reason.
  if (over && now->state() == v1::JOB_STATE_SUCCEEDED) {
    context_.console->Note(WhatNext(*now, state_folder_));
  }
  return code;
}

void LocalRun::SaveAndSayHowToGoOn(const v1::Job& job) {
  Console& console = *context_.console;
  const bool writes = job.spec().has_write();  // and has no state to keep but its texts
  console.Note(absl::StrCat(writes ? "ending" : "writing a checkpoint",
                            " after the step at hand; Ctrl-C again ends at once"));
  // A step may take hours, so the wait has no short end; it says that it goes on.
  const Clock& clock = *SystemClock::Get();
  const double began = clock.MonotonicSeconds();
  double said = began;
  const bool in_order = cluster_->SaveAndEndCoordinator([&, stop = context_.stop] {
    const double now = clock.MonotonicSeconds();
    if (now - said >= kWaitNoteSeconds) {
      said = now;
      console.Note(
          absl::StrFormat("the coordinator has not ended for %.0f s: it waits for the step at "
                          "hand, or stands still; "
                          "Ctrl-C again ends at once",
                          now - began));
    }
    return stop->at_once();
  });
  if (writes) {
    console.Note(absl::StrCat("job ", job.id(), " is interrupted; to go on with it:\n",
                              ResumeLine(job.id())));
    return;
  }
  const std::optional<uint64_t> step = NewestCheckpoint(state_folder_, job.id());
  if (!in_order) console.Note("ended at once: the steps since the last checkpoint are lost");
  console.Note(absl::StrCat("job ", job.id(), " is interrupted, its newest checkpoint is ",
                            step.has_value() ? absl::StrCat("of step ", *step) : "none yet",
                            "; to go on with it:\n", ResumeLine(job.id())));
}

// A connection that nobody reads does not hear that the coordinator wants to go, and holds it up.
void LocalRun::Disconnect() { client_.reset(); }

void LocalRun::Stop() {
  Disconnect();
  cluster_->Stop([stop = context_.stop] { return stop->at_once(); });
}

std::string LocalRun::ResumeLine(const std::string& job) const {
  std::string line =
      absl::StrCat("  stagecoach resume ", job, " --state-dir ", ShellWord(state_folder_));
  const std::string devices = absl::StrJoin(flags_.devices, ",");
  if (devices != "cpu") absl::StrAppend(&line, " --device ", devices);
  if (flags_.threads_per_stage > 0) {
    absl::StrAppend(&line, " --threads-per-stage ", flags_.threads_per_stage);
  }
  if (flags_.memory_per_stage > 0) {
    absl::StrAppend(&line, " --memory-per-stage ", flags_.memory_per_stage);
  }
  for (const std::string& root : flags_.data_roots) {
    absl::StrAppend(&line, " --data-root ", ShellWord(root));
  }
  return line;
}

void LocalRun::NoteHeldJobs(const std::string& except) {
  const absl::StatusOr<v1::ListJobsResponse> jobs = client_->List();
  if (!jobs.ok()) return;  // what comes next says why
  for (const v1::Job& job : jobs->jobs()) {
    if (!IsHeld(job) || job.id() == except) continue;
    context_.console->Note(absl::StrCat("job ", job.id(), " was interrupted at step ", job.step(),
                                        " of ", job.total_steps(),
                                        " and waits; to go on with it:\n", ResumeLine(job.id())));
  }
}

}  // namespace stagecoach
