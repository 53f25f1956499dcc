// Commands: what `stagecoach X` does, a function each. services/cli/command_line.h reads the
// command line. Every function returns the exit code.
// Threads:   the main thread.
#ifndef STAGECOACH_SERVICES_CLI_COMMANDS_COMMANDS_H_
#define STAGECOACH_SERVICES_CLI_COMMANDS_COMMANDS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/numbers/precision.h"
#include "services/cli/client/job_client.h"
#include "services/cli/client/stop_signal.h"
#include "services/cli/output/console.h"
#include "services/cli/profile/connection.h"

namespace stagecoach {

// Shared by all commands.
struct CommandContext {
  Console* console = nullptr;
  StopSignal* stop = nullptr;
  ClientOptions client;
  ConnectionSettings flags;    // the part of `client` that the command line gives
  bool address_given = false;  // by flag or environment, or by a cluster's name there
  OutputFormat output = OutputFormat::kTable;
  int input = 0;  // descriptor of what commands read as standard input
  std::function<absl::StatusOr<std::unique_ptr<JobClient>>(const ClientOptions&)> connect =
      ConnectJobClient;
};

struct SubmitOptions {
  std::string file;
  std::string id;  // empty: made from the job's name
  bool detach = false;
  bool dry_run = false;
  bool data_again = false;  // uploads what is there too
};
int RunSubmit(const SubmitOptions& options, CommandContext& context);

// Flags of a cluster of processes on this machine.
struct LocalClusterFlags {
  std::vector<std::string> devices = {"cpu"};  // one a stage, again from the first if too few
  int64_t threads_per_stage = 0;               // 0: the cores divided among the stages
  int64_t memory_per_stage = 0;                // bytes; 0: no limit
  std::vector<std::string> data_roots;         // for jobs, beside the job's own files
};

struct LocalOptions {
  std::string file;
  std::string id;         // empty: the job's name
  std::string state_dir;  // empty: a new folder
  LocalClusterFlags cluster;
  int64_t stages = 0;      // 0: as the job says
  std::string trace_file;  // of the job's last steps, written at its end; empty: none
};
int RunLocal(const LocalOptions& options, CommandContext& context);

struct ResumeOptions {
  std::string job;
  std::string id;      // of a new job, if any; empty: a free one
  int64_t stages = 0;  // 0: as the job says
  int64_t steps = 0;   // 0: as the job says
  // State folder of the `local` run that goes on. Empty: a job of the coordinator.
  std::string state_dir;
  LocalClusterFlags cluster;
};
int RunResume(const ResumeOptions& options, CommandContext& context);

// Serves the page for the jobs of a folder, until it is stopped; runs none of them.
int RunUi(const std::string& state_dir, CommandContext& context);

struct PlanOptions {
  std::string file;
  int64_t stages = 0;                          // 0: as the job says
  std::vector<std::string> devices = {"cpu"};  // as in LocalOptions; the server knows its own
  int64_t memory_per_stage = 0;                // bytes; 0: no limit; the server knows its own
  int64_t threads_per_stage = 0;               // 0: as in LocalClusterFlags; the same
  double gflops = 0;                           // of a stage; 0: assumed
  bool ask_server = false;
  bool show_schedule = false;
};
int RunPlan(const PlanOptions& options, CommandContext& context);

// Writes a job file that trains the model of a Hugging Face folder.
struct ImportOptions {
  std::string folder;
  std::string to;  // the job file; empty: standard output
  std::string text = "input.txt";
  std::string tokenizer;  // empty: the folder's
  int64_t context = 0;    // 0: the model's, but at most 1024
};
int RunImport(const ImportOptions& options, CommandContext& context);

// The trained weights that a command uses, and its threads.
struct WeightOptions {
  std::string source;    // see services/cli/trained/weight_source.h
  std::string job_file;  // job that trained a checkpoint's weights; empty: none
  int64_t step = -1;     // of a cluster's job; negative: the newest
  int64_t threads = 0;   // 0: all cores
  // To compute in, of commands on text; none: float32 here, the one of the job that trained on stages.
  std::optional<Precision> precision;
};

// Stages that write texts, in the place of this machine: of the coordinator's cluster, or of one
// that the command starts here. One of the two at most; 0: none.
struct WritingStages {
  int64_t cluster = 0, local = 0;
  bool given() const { return cluster > 0 || local > 0; }
};

struct GenerateOptions {
  WeightOptions weights;
  std::string prompt = "\n";
  std::string prompts;    // a file with one a line, or "-"; empty: the one above
  std::string tokenizer;  // empty: the job's, if it has one
  int64_t tokens = 200;
  double temperature = 0.8;  // 0: always the likeliest
  int64_t top_k = 0;         // 0: of all tokens
  double top_p = 1;
  std::vector<std::string> stops;
  uint64_t seed = 1;
  int64_t batch = 0;  // prompts that are continued together; 0: LinesOfGroup decides
  WritingStages stages;
};
int RunGenerate(const GenerateOptions& options, CommandContext& context);

struct TranslateOptions {
  WeightOptions weights;
  std::string input;      // one sentence a line; empty or "-": standard input
  std::string tokenizer;  // empty: the job's
  std::string tag;        // of the target language, as "<2de>"
  int64_t beam = 5;
  double length_penalty = 0.6;
  int64_t tokens = 0;  // of a translation; 0: as many as the network has positions
  int64_t batch = 0;   // sentences that are translated together; 0: LinesOfGroup decides
  WritingStages stages;
};
int RunTranslate(const TranslateOptions& options, CommandContext& context);

struct PerplexityOptions {
  WeightOptions weights;
  std::string file;
  std::string tokenizer;  // empty: the job's
};
int RunPerplexity(const PerplexityOptions& options, CommandContext& context);

struct ClassifyOptions {
  WeightOptions weights;
  std::vector<std::string> pictures;  // files and folders
  int64_t top = 5;                    // classes of each
};
int RunClassify(const ClassifyOptions& options, CommandContext& context);

struct SegmentOptions {
  WeightOptions weights;
  std::vector<std::string> pictures;  // files and folders
  std::string out;                    // folder for the masks
};
int RunSegment(const SegmentOptions& options, CommandContext& context);

struct ScoreOptions {
  std::string hypotheses;  // "-": standard input
  std::vector<std::string> references;
  std::vector<std::string> metrics;  // "bleu", "chrf"
  std::string tokenize = "13a";      // or "none"; of BLEU
  int digits = 1;                    // of a score in the table, behind the point
};
int RunScore(const ScoreOptions& options, CommandContext& context);

struct TrainTokenizerOptions {
  std::vector<std::string> inputs;  // text files, plain or gzip
  std::string output;
  int64_t vocabulary = 0;
  std::string model = "unigram";  // or bpe
  double character_coverage = 0.9995;
  bool byte_fallback = true;
  std::string user_symbols;  // with commas between them
  int64_t threads = 1;
  bool verbose = false;
};
int RunTrainTokenizer(const TrainTokenizerOptions& options, CommandContext& context);

struct TokenizerOptions {
  std::string model;  // the file
  std::string file;   // to encode or decode; empty or "-": standard input
  bool pieces = false;
  int64_t first = 10;  // pieces to show
};
int RunShowTokenizer(const TokenizerOptions& options, CommandContext& context);
int RunEncode(const TokenizerOptions& options, CommandContext& context);
int RunDecode(const TokenizerOptions& options, CommandContext& context);

struct PutDataOptions {
  std::vector<std::string> paths;  // files and folders; a folder alone is the set's root
  std::string name;                // empty: none
  bool replace = false;            // a set that has the name loses it
  bool again = false;              // uploads what is there too
};
int RunPutData(const PutDataOptions& options, CommandContext& context);
int RunListData(CommandContext& context);
// data_set: name or id.
int RunShowData(const std::string& data_set, CommandContext& context);

struct RemoveDataOptions {
  std::string data_set;
  bool yes = false;  // does not ask
};
int RunRemoveData(const RemoveDataOptions& options, CommandContext& context);

struct CheckpointsOptions {
  std::string job;
  bool verify = false;
};
int RunCheckpoints(const CheckpointsOptions& options, CommandContext& context);

struct RemoveCheckpointsOptions {
  std::string job;
  std::vector<uint64_t> steps;
  bool missing_ok = false;  // a step without a checkpoint is no error
};
int RunRemoveCheckpoints(const RemoveCheckpointsOptions& options, CommandContext& context);

struct PruneOptions {
  double older_than_seconds = 0;  // since the end
  int64_t keep = 0;               // of the jobs in `states`: the newest ends stay
  std::vector<v1::JobState> states = {v1::JOB_STATE_SUCCEEDED, v1::JOB_STATE_FAILED,
                                      v1::JOB_STATE_CANCELLED};
  bool dry_run = false;
  bool yes = false;  // do not ask
};
// Removes ended jobs with their files. Asks at a terminal; elsewhere `yes` or `dry_run` is needed.
int RunPrune(const PruneOptions& options, CommandContext& context);
// Newest end first; without entries that the coordinator has set aside.
std::vector<v1::Job> JobsToPrune(const v1::ListJobsResponse& list, const PruneOptions& options,
                                 double now_unix_seconds);

struct ExportOptions {
  std::string job;    // with names also a source as for `generate`
  int64_t step = -1;  // negative: the newest checkpoint
  bool average = false;
  // A table of network/names/weight_names.h; empty: none.
  std::string names;
  // The file for the weights in its names, or the folder for Hugging Face's; without names the
  // folder for the export's files. Empty: they stay at the coordinator.
  std::string to;
  std::string job_file;  // for a checkpoint's folder
};
int RunExport(const ExportOptions& options, CommandContext& context);

struct RecordsOptions {
  std::string job;
  std::string to;  // a new folder of this machine
};
int RunRecords(const RecordsOptions& options, CommandContext& context);

struct TraceOptions {
  std::string job;
  uint32_t steps = 5;               // 0: all that the stages still hold
  std::string file = "trace.json";  // "-": standard output
};
int RunTrace(const TraceOptions& options, CommandContext& context);

struct LogsOptions {
  std::string job;
  bool follow = false;
  int32_t stage = -1;          // negative: the coordinator and all stages
  uint32_t tail = 0;           // 0: all
  bool json = false;           // one object a line
  double retry_seconds = 0.5;  // after a broken stream
};
int RunLogs(const LogsOptions& options, CommandContext& context);

struct ValidateOptions {
  std::string file;
  bool data_elsewhere = false;  // the data need not lie on this machine
};
int RunValidate(const ValidateOptions& options, CommandContext& context);

struct CertsOptions {
  std::string folder;
  std::vector<std::string> entries;  // services/common/tls/certificate_entry.h
  int days = 825;
  int64_t owner = -1;  // user id; negative: this process's
};
int RunCerts(const CertsOptions& options, CommandContext& context);

// Changes the profile. The cluster's files are those of the shared flags, or of `certs`.
struct ConfigSetOptions {
  std::string name, coordinator;
  std::string certs;  // a folder of `certs`; empty: none
};
int RunConfigSet(const ConfigSetOptions& options, CommandContext& context);
int RunConfigShow(CommandContext& context);
int RunConfigUse(const std::string& name, CommandContext& context);
int RunConfigRemove(const std::string& name, CommandContext& context);

// Print for completion scripts, one word a line: the jobs of the coordinator, the profile's
// clusters, this machine's devices. If the coordinator does not answer within a second, nothing is printed: nobody wants an
// error at the prompt.
void CompleteJobs(CommandContext& context);
void CompleteDataSets(CommandContext& context);
void CompleteClusters(CommandContext& context);
void CompleteDevices(CommandContext& context);
int RunList(CommandContext& context);
int RunDescribe(const std::string& job, CommandContext& context);
int RunWatch(const std::string& job, CommandContext& context);
int RunWait(const std::string& job, CommandContext& context);
int RunCancel(const std::string& job, CommandContext& context);
int RunStages(CommandContext& context);
int RunHealth(const std::string& server, CommandContext& context);  // empty: the coordinator
int RunVersion(CommandContext& context);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_COMMANDS_COMMANDS_H_
