// The only list of metric names. docs/metrics.md is this list for people; a test compares the two.
// Rules: prefix stagecoach_ (grpc_server_ and process_ names are standard); base units; _total on
// counters; few, bounded labels. `by`: C coordinator, S stage.
#ifndef STAGECOACH_SERVICES_COMMON_OBSERVE_METRIC_NAMES_H_
#define STAGECOACH_SERVICES_COMMON_OBSERVE_METRIC_NAMES_H_

#include <span>

namespace stagecoach {

enum class MetricType { kCounter, kGauge, kHistogram };

struct MetricDefinition {
  const char* name;
  MetricType type;
  const char* unit;
  const char* labels;  // comma-separated, in the order in which MetricWriter::Add wants the values
  const char* by;      // "C", "S" or "C S"
  const char* help;
};

namespace metric {

inline constexpr auto kC = MetricType::kCounter;
inline constexpr auto kG = MetricType::kGauge;
inline constexpr auto kH = MetricType::kHistogram;

// Metrics of every program.
inline constexpr MetricDefinition kBuildInfo = {
    "stagecoach_build_info",   kG,    "1",
    "version,revision,device", "C S", "Build of this process; the value is always 1."};
inline constexpr MetricDefinition kRpcHandled = {
    "grpc_server_handled_total",          kC,    "1",
    "grpc_service,grpc_method,grpc_code", "C S", "RPCs completed by the server, by status code."};
inline constexpr MetricDefinition kRpcSeconds = {
    "grpc_server_handling_seconds", kH,    "s",
    "grpc_service,grpc_method",     "C S", "Time the server took to answer an RPC."};
inline constexpr MetricDefinition kRpcRefused = {
    "stagecoach_rpc_refused_total",
    kC,
    "1",
    "grpc_service,grpc_method,role",
    "C S",
    "RPCs refused by the certificate of the caller, by its role (none: without one); with TLS "
    "only. Absent until the first."};
inline constexpr MetricDefinition kConnections = {
    "stagecoach_grpc_connections",
    kG,
    "1",
    "",
    "C S",
    "Open connections of others to the gRPC server, also those without a call yet."};
inline constexpr MetricDefinition kConnectionsRefused = {
    "stagecoach_grpc_connections_refused_total",
    kC,
    "1",
    "reason",
    "C S",
    "Connections closed at once: total (--max-connections), peer (--max-connections-per-peer), "
    "descriptors (the process may open no more files)."};
inline constexpr MetricDefinition kConnectionsEnded = {
    "stagecoach_grpc_connections_ended_total",
    kC,
    "1",
    "reason",
    "C S",
    "Connections ended for what the peer sent. preface: no HTTP/2. header_bytes: a header block "
    "over 64 KiB. header_frames: one in over 5 frames. headers: such as no client of gRPC sends. "
    "resets: over 1000 at once, or 33 a second. guesses: a token beyond 30 unknown ones from its "
    "address, or one a second."};
inline constexpr MetricDefinition kProcessCpu = {
    "process_cpu_seconds_total", kC, "s", "", "C S", "User and system CPU time spent."};
inline constexpr MetricDefinition kProcessMemory = {
    "process_resident_memory_bytes", kG, "bytes", "", "C S", "Resident memory size."};
inline constexpr MetricDefinition kProcessFds = {"process_open_fds",      kG, "1", "", "C S",
                                                 "Open file descriptors."};
inline constexpr MetricDefinition kProcessStart = {
    "process_start_time_seconds",
    kG,
    "unix s",
    "",
    "C S",
    "Start time of the process since the Unix epoch."};
inline constexpr MetricDefinition kCertificateExpiry = {
    "stagecoach_certificate_expiry_timestamp_seconds",
    kG,
    "unix s",
    "certificate",
    "C S",
    "End of the certificates this process goes by: identity (its own), authority (those "
    "it accepts); with TLS only."};

// Metrics of a stage server. stage: its registered name; peer: the neighbour upstream or
// downstream.
inline constexpr MetricDefinition kStageTime = {
    "stagecoach_stage_time_seconds_total",
    kC,
    "s",
    "stage,replica,phase",
    "S",
    "Wall time of the stage split into disjoint phases; the phases add up to the wall time."};
inline constexpr MetricDefinition kStageMicroBatches = {
    "stagecoach_stage_microbatches_total",
    kC,
    "1",
    "stage,phase",
    "S",
    "Micro-batches that a stage has computed, by phase."};
inline constexpr MetricDefinition kStageMicroBatchSeconds = {
    "stagecoach_stage_microbatch_duration_seconds",
    kH,
    "s",
    "stage,phase",
    "S",
    "Time that a stage computed on one micro-batch, by phase; the loss is part of backward."};
inline constexpr MetricDefinition kStageMemory = {
    "stagecoach_stage_memory_bytes", kG, "bytes", "stage,kind", "S", "Memory in use, by kind."};
inline constexpr MetricDefinition kStageMemoryPeak = {
    "stagecoach_stage_memory_peak_bytes",
    kG,
    "bytes",
    "stage,kind",
    "S",
    "Highest memory in use since the step at hand began, by kind."};
inline constexpr MetricDefinition kStageMemoryLimit = {
    "stagecoach_stage_memory_limit_bytes",         kG, "bytes", "stage", "S",
    "Memory the stage may use; 0 without a limit."};
inline constexpr MetricDefinition kStageSnapshots = {
    "stagecoach_stage_snapshot_bytes",
    kG,
    "bytes",
    "stage",
    "S",
    "Host memory with snapshots: the stage's own shards, and copies of its neighbour's."};
inline constexpr MetricDefinition kStageBadRecords = {
    "stagecoach_stage_data_bad_records",
    kG,
    "1",
    "stage",
    "S",
    "Records that the loaded data set is without, as they cannot be read (on_bad_record: skip)."};
// By NVML, for the whole card; exported only if a stage computes on a card and NVML answers.
inline constexpr MetricDefinition kDataFetched = {
    "stagecoach_data_fetched_bytes_total",
    kC,
    "bytes",
    "stage",
    "S",
    "Bytes of data sets that the stage fetched from the store."};
inline constexpr MetricDefinition kDataCached = {
    "stagecoach_data_cache_bytes",
    kG,
    "bytes",
    "stage",
    "S",
    "Disk space of the data sets in the stage's cache; 0 until a job reads one."};
inline constexpr MetricDefinition kDeviceUtilization = {
    "stagecoach_stage_device_utilization_ratio",
    kG,
    "0-1",
    "stage",
    "S",
    "Share of the driver's last sampling period in which a kernel of any process ran on the card; "
    "with NVML only."};
inline constexpr MetricDefinition kDevicePower = {
    "stagecoach_stage_device_power_watts",       kG, "W", "stage", "S",
    "Power that the card draws; with NVML only."};
inline constexpr MetricDefinition kDeviceTemperature = {
    "stagecoach_stage_device_temperature_celsius", kG, "C", "stage", "S",
    "Temperature of the card; with NVML only."};
inline constexpr MetricDefinition kDeviceMemoryUsed = {
    "stagecoach_stage_device_memory_used_bytes",
    kG,
    "bytes",
    "stage",
    "S",
    "Memory of the card in use by all processes; with NVML only."};
inline constexpr MetricDefinition kDeviceMemory = {
    "stagecoach_stage_device_memory_size_bytes", kG, "bytes", "stage", "S",
    "Memory that the card has; with NVML only."};
inline constexpr MetricDefinition kLinkSent = {"stagecoach_link_sent_bytes_total",
                                               kC,
                                               "bytes",
                                               "stage,peer,kind",
                                               "S",
                                               "Payload bytes sent to a neighbour: activation "
                                               "downstream, gradient upstream, each with what is "
                                               "tied."};
inline constexpr MetricDefinition kLinkReceived = {
    "stagecoach_link_received_bytes_total",
    kC,
    "bytes",
    "stage,peer,kind",
    "S",
    "Payload bytes received from a neighbour: activation from upstream, gradient from downstream."};
inline constexpr MetricDefinition kLinkTransfer = {
    "stagecoach_link_transfer_duration_seconds",
    kH,
    "s",
    "stage,peer",
    "S",
    "Time from handing a tensor to the link to its complete arrival here, from that neighbour."};
inline constexpr MetricDefinition kLinkInflight = {
    "stagecoach_link_inflight_messages",
    kG,
    "1",
    "stage,peer",
    "S",
    "Messages sent to a neighbour and not yet taken by its executor."};
inline constexpr MetricDefinition kLinkReconnects = {
    "stagecoach_link_reconnects_total",
    kC,
    "1",
    "stage,peer",
    "S",
    "Connections of a link after its first one, for example by recoveries."};
inline constexpr MetricDefinition kLinkRepeats = {
    "stagecoach_link_repeats_total",
    kC,
    "1",
    "stage,peer",
    "S",
    "Times that a neighbour was asked to send again, because something arrived damaged."};

// Metrics of the coordinator. job_id: live jobs only, deleted when the job ends.
inline constexpr MetricDefinition kJobInfo = {"stagecoach_job_info",
                                              kG,
                                              "1",
                                              "job_id,name,model,partitions,microbatches",
                                              "C",
                                              "Facts about a live job; the value is always 1."};
inline constexpr MetricDefinition kJobs = {
    "stagecoach_jobs", kG, "1", "state", "C", "Jobs known to the coordinator, by state."};
inline constexpr MetricDefinition kJobsSubmitted = {
    "stagecoach_jobs_submitted_total",
    kC,
    "1",
    "",
    "C",
    "Jobs accepted since the start; a repeated submit of the same id counts once."};
inline constexpr MetricDefinition kJobsFinished = {
    "stagecoach_jobs_finished_total",
    kC,
    "1",
    "state",
    "C",
    "Jobs that reached a final state since the start."};
inline constexpr MetricDefinition kJobQueueWait = {
    "stagecoach_job_queue_wait_seconds",
    kH,
    "s",
    "",
    "C",
    "Time from acceptance of a job to the end of its first step."};
inline constexpr MetricDefinition kJobQueueOldest = {
    "stagecoach_job_queue_oldest_seconds",
    kG,
    "s",
    "",
    "C",
    "How long the oldest job that has not begun has waited; 0 if none waits."};
inline constexpr MetricDefinition kJobWatches = {"stagecoach_job_watches",
                                                 kG,
                                                 "1",
                                                 "",
                                                 "C",
                                                 "Watches of jobs' records that are open: those of "
                                                 "clients and the coordinator's own two a job."};
inline constexpr MetricDefinition kFolderFree = {
    "stagecoach_folder_free_bytes",
    kG,
    "bytes",
    "folder",
    "C",
    "Room left on the file system of the folder: checkpoints or state (journal, records, "
    "exports)."};
inline constexpr MetricDefinition kFolderSize = {
    "stagecoach_folder_size_bytes",          kG, "bytes", "folder", "C",
    "Size of the file system of the folder."};
inline constexpr MetricDefinition kStages = {"stagecoach_stages",           kG, "1", "state", "C",
                                             "Registered stages, by state."};
inline constexpr MetricDefinition kStageHeartbeat = {
    "stagecoach_stage_last_heartbeat_timestamp_seconds", kG, "unix s", "stage", "C",
    "Coordinator time of the last heartbeat of a stage."};
inline constexpr MetricDefinition kBubble = {
    "stagecoach_pipeline_bubble_ratio",
    kG,
    "0-1",
    "job_id",
    "C",
    "Measured share of stage time lost to the bubble in the last complete step."};
inline constexpr MetricDefinition kBubbleIdeal = {
    "stagecoach_pipeline_ideal_bubble_ratio",
    kG,
    "0-1",
    "job_id",
    "C",
    "The bubble of the running job's schedule with equal cells and free links: (K-1)/(M+K-1) for "
    "gpipe."};
inline constexpr MetricDefinition kImbalance = {
    "stagecoach_pipeline_imbalance_ratio",
    kG,
    "1",
    "job_id",
    "C",
    "Busy time of the slowest stage over the mean of all stages in the last step; 1 is balanced."};
inline constexpr MetricDefinition kStep = {
    "stagecoach_train_step", kG, "1", "job_id", "C", "Steps done."};
inline constexpr MetricDefinition kTargetSteps = {
    "stagecoach_train_target_steps", kG, "1", "job_id", "C", "Steps the job is to run."};
inline constexpr MetricDefinition kSteps = {
    "stagecoach_train_steps_total", kC, "1", "job_id,result", "C", "Steps finished, by result."};
inline constexpr MetricDefinition kStepSeconds = {
    "stagecoach_train_step_duration_seconds", kH, "s", "", "C", "Wall time of one step."};
inline constexpr MetricDefinition kExamples = {"stagecoach_train_examples_total",
                                               kC,
                                               "1",
                                               "job_id",
                                               "C",
                                               "Sequences or pictures consumed by applied steps."};
inline constexpr MetricDefinition kTokens = {
    "stagecoach_train_tokens_total",
    kC,
    "1",
    "job_id",
    "C",
    "Tokens consumed by applied steps, padding included; of jobs on text."};
inline constexpr MetricDefinition kFlops = {
    "stagecoach_train_model_flops_total",
    kC,
    "1",
    "job_id",
    "C",
    "Floating-point operations of the model in applied steps, recomputation left out."};
inline constexpr MetricDefinition kLoss = {
    "stagecoach_train_loss", kG,  "1",
    "job_id,split",          "C", "Mean loss of the last step (train) or evaluation (eval)."};
inline constexpr MetricDefinition kMeasure = {
    "stagecoach_train_measure",
    kG,
    "1",
    "job_id,split,measure",
    "C",
    "What is measured beside the loss, as accuracy or padding, of the last step or evaluation; of "
    "single classes nothing."};
inline constexpr MetricDefinition kLearningRate = {
    "stagecoach_train_learning_rate", kG, "1", "job_id", "C", "Learning rate of the last step."};
inline constexpr MetricDefinition kGradientNorm = {
    "stagecoach_train_gradient_norm",       kG, "1", "job_id", "C",
    "Global gradient norm before clipping."};
inline constexpr MetricDefinition kNonfinite = {
    "stagecoach_train_nonfinite_steps_total",        kC, "1", "job_id", "C",
    "Steps whose loss or gradients were not finite."};
inline constexpr MetricDefinition kExpectedEnd = {
    "stagecoach_train_expected_end_timestamp_seconds", kG, "unix s", "job_id", "C",
    "Estimated end of the job since the Unix epoch."};
inline constexpr MetricDefinition kRecoveries = {
    "stagecoach_job_recoveries_total", kC, "1", "job_id", "C", "Recoveries of the job."};
inline constexpr MetricDefinition kStageRecoveries = {
    "stagecoach_stage_recoveries_total",
    kC,
    "1",
    "stage,reason",
    "C",
    "Recoveries that a stage caused: lost (lease or process), unavailable (a call broke), deadline "
    "(no answer in time), error."};
inline constexpr MetricDefinition kDataWait = {
    "stagecoach_data_wait_seconds_total",
    kC,
    "s",
    "job_id",
    "C",
    "Time that the stages of the job waited for data, added up."};
inline constexpr MetricDefinition kCheckpointSeconds = {
    "stagecoach_checkpoint_duration_seconds",
    kH,
    "s",
    "op",
    "C",
    "Time to save a checkpoint (save), or to load a job's weights onto its stages (load)."};
inline constexpr MetricDefinition kCheckpointSize = {
    "stagecoach_checkpoint_size_bytes",
    kG,
    "bytes",
    "job_id",
    "C",
    "Size of the last complete checkpoint; 0 before the first."};
inline constexpr MetricDefinition kCheckpointTime = {
    "stagecoach_checkpoint_last_success_timestamp_seconds",
    kG,
    "unix s",
    "job_id",
    "C",
    "Time of the last complete checkpoint; the start of the job before the first."};
inline constexpr MetricDefinition kCheckpointStep = {
    "stagecoach_checkpoint_last_step",
    kG,
    "1",
    "job_id",
    "C",
    "Step of the last complete checkpoint; 0 before the first."};
inline constexpr MetricDefinition kCheckpointFailures = {
    "stagecoach_checkpoint_failures_total", kC, "1", "job_id,op", "C",
    "Checkpoint operations that failed."};

}  // namespace metric

// All of the above, in that order.
std::span<const MetricDefinition* const> AllMetrics();

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_OBSERVE_METRIC_NAMES_H_
