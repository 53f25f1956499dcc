// Control values: what the coordinator tells a stage and what it hears back. Names, not numbers: no
// tensor passes here. Both sides and the gRPC adapters share these; the wire form is in
// proto/stagecoach/v1/stage.proto.
// Every command carries a Fence; a stage drops older incarnations and may see a command twice.
#ifndef STAGECOACH_PLAN_CONTROL_H_
#define STAGECOACH_PLAN_CONTROL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/files/data_facts.h"
#include "base/ids.h"
#include "plan/costs/cost_model.h"
#include "plan/job/held_out.h"
#include "plan/job/job_spec.h"
#include "plan/measure.h"
#include "plan/phase.h"
#include "plan/plan.h"
#include "plan/written_piece.h"

namespace stagecoach {

// Identity of a data set: compared between first and last stage, and again on resume.
struct DatasetManifest {
  int64_t bytes = 0;
  std::string sha256;  // over all files; empty: unknown
  int64_t train_samples = 0;
  int64_t evaluation_samples = 0;
  friend bool operator==(const DatasetManifest&, const DatasetManifest&) = default;
};

// Identity of the weights that a job begins with (JobSpec::initialize): compared with every load
// that reads them.
struct WeightsManifest {
  int64_t bytes = 0;
  std::string sha256;  // of what all stages read (checkpoint/content_digest.h); empty: not known
  friend bool operator==(const WeightsManifest&, const WeightsManifest&) = default;
};

// The part of them that one stage has read: the headers of all files, and its cell's tensors.
struct WeightsRead {
  struct Tensor {
    std::string name, dtype, shape, sha256;  // as a content digest takes them
    friend bool operator==(const Tensor&, const Tensor&) = default;
  };
  int64_t bytes = 0;          // of all files
  std::string header_sha256;  // of names, types and extents; empty: nothing was read
  int64_t tensors = 0;        // of all files
  std::string named_sha256;   // digest of the content that the file itself names; empty: none
  std::vector<Tensor> read;   // ascending names
  friend bool operator==(const WeightsRead&, const WeightsRead&) = default;
};

// Snapshots in the memory of stages (checkpoint/snapshot.h): each stage keeps its own shard, and
// sends it to a neighbour.
struct SnapshotPlan {
  std::string key;  // identity of the job, even if its id was used before; empty: no snapshots
  std::string replica_address;  // of the stage that keeps a copy of this one's shard
  // Snapshot to load instead of a checkpoint's folder: the manifest as FormatManifest writes it
  // (empty: none), and the holders of its shards.
  std::string manifest;
  struct Holder {
    std::string file, address;
    friend bool operator==(const Holder&, const Holder&) = default;
  };
  std::vector<Holder> holders;
  friend bool operator==(const SnapshotPlan&, const SnapshotPlan&) = default;
};

// Of one of a stage's cells: the stages of the cells in front of it and behind it, perhaps itself.
struct CellNeighbours {
  std::string downstream_address;  // host:port; empty for the last cell
  std::string upstream_name;       // of the stage that dials; empty for the first cell
  friend bool operator==(const CellNeighbours&, const CellNeighbours&) = default;
};

struct LoadCommand {
  Fence fence;   // step: optimizer steps already applied (0, or the checkpoint's)
  JobSpec spec;  // its network is for messages to people; stages build `network`
  std::shared_ptr<const Network> network;  // never null; as the job trains it
  Partition partition;
  StageId stage;
  std::vector<CellNeighbours> neighbours;  // by cell of the stage
  std::string checkpoint_folder;  // committed step folder to load from; empty: initial weights
  bool fresh_optimizer = false;   // of the checkpoint, load the weights only
  DatasetManifest expected_data;  // checked if sha256 is not empty
  std::string probe_folder;       // probe to answer (checkpoint/folder_probe.h); empty: none
  SnapshotPlan snapshot;
  // Parameters and states have been trained: they come from a checkpoint or a snapshot.
  bool resumes() const { return !checkpoint_folder.empty() || !snapshot.manifest.empty(); }
};

// Asks a stage to measure layer after layer.
struct ProfileCommand {
  JobSpec spec;  // as in a LoadCommand
  std::shared_ptr<const Network> network;
};

struct LoadResult {
  DatasetManifest data;          // filled on the first and last stage
  DataFacts facts;               // from stages that read: each its own findings
  ShownPictures shown;           // of the stage that reads images; null: not shown
  WeightsRead weights;           // of a job's weights to begin with, if it took some
  std::string fingerprint;       // of the back end; all stages of a job must agree
  StageMemory memory;            // bytes by kind after loading
  bool folder_answered = false;  // a probe was asked for, and the stage knows probes
  // Why the stage cannot use the checkpoint folder. Unless it is OK or RESOURCE_EXHAUSTED (the
  // folder is only full), nothing was loaded.
  absl::Status folder;
  bool snapshots = false;               // there is room for its own and a neighbour's
  std::vector<std::string> data_notes;  // what a user should know of the data
  // For the stage's own log, not sent.
  std::string attention;                   // the code that computes it, and why
  std::string snapshot_note;               // why none can be taken
  std::string local_note;                  // how much of a checkpoint this machine had itself
  std::vector<std::string> weights_notes;  // what it took of the file of weights, and how
};

// The coordinator's one decision about the step before, applied before new work starts.
struct ApplyDecision {
  uint64_t step = 0;             // index of the step whose gradients these are
  bool apply = true;             // false: skip, gradients are dropped
  uint64_t optimizer_steps = 0;  // updates that the optimizer's state has seen before this one
  double learning_rate = 0;
  double gradient_scale = 1;  // clipping
  friend bool operator==(const ApplyDecision&, const ApplyDecision&) = default;
};

// kWrite: of a job with `write`, on the lines of mini-batch `evaluation_batch`.
enum class WorkKind : uint8_t { kNone, kTrain, kEvaluate, kTranslate, kWrite };

struct RunCommand {
  Fence fence;  // fence.step = index of the step to run = steps decided after `apply`
  std::optional<ApplyDecision> apply;
  WorkKind work = WorkKind::kNone;
  uint64_t evaluation_batch = 0;
  // kEvaluate, kTranslate: with the averages of the weights in their place.
  bool average = false;
  // Take a snapshot once the decision is applied: its manifest without shards. Empty: none.
  std::string snapshot;
  // Step of the newest whole snapshot, loaded or taken since; others may be dropped. 0: none.
  uint64_t snapshot_kept = 0;
  bool snapshot_of_load = false;
  bool snapshots_end = false;  // this load takes no more snapshots: drop those held
  // Copy the tensors for a checkpoint of fence.step once the decision is applied. A WriteShard with
  // this fence writes the copy, while other commands run.
  bool copy_shard = false;
  // kWrite: rows of tokens for each group, at most; then it pauses, so that people see what is written.
  int64_t rounds = 0;
  bool goes_on = false;  // kWrite: with the mini-batch that the command before paused
};

// Progress of a stage's snapshots.
struct SnapshotReport {
  bool busy = false;  // one is being hashed, or is on its way to the neighbour
  // Newest snapshot that is here and at the neighbour; nullopt: none of this load.
  std::optional<uint64_t> whole_step;
  double seconds = 0;  // that the last whole one took: of the executor, and of the thread behind it
  friend bool operator==(const SnapshotReport&, const SnapshotReport&) = default;
};

// Source and target positions of arrays whose lengths vary, and those that are padding; 0 where
// lengths are fixed.
struct PaddingCount {
  int64_t positions = 0, padded = 0;
  friend bool operator==(const PaddingCount&, const PaddingCount&) = default;
};

struct StepReport {
  Fence fence;
  std::optional<ApplyDecision> applied;  // the decision that came with the command
  // The loss of the mini-batch; last stage only.
  bool has_loss = false;
  double loss_sum = 0;
  double terms = 0;     // count or weight of the loss's terms; ignored targets are none
  int64_t targets = 0;  // ignored ones too: for throughput
  PaddingCount padding;
  std::vector<Measure> measures;          // sums
  std::vector<ClassCounts> class_counts;  // by class, if the objective counts them
  std::vector<ShownAnswer> shown;  // of the first held-out samples, if the mini-batch has them
  std::vector<int64_t> translation_counts;           // scores/corpus_counts.h; kTranslate only
  std::vector<ShownTranslation> shown_translations;  // likewise, of the first held-out sentences
  std::vector<WrittenPiece> written;                 // kWrite; since the command before
  bool write_over = false;                           // kWrite: the mini-batch is written
  std::vector<double> layer_squared_norms;           // this stage's layers in order; training only
  bool finite = true;                                // loss and every norm
  double step_seconds = 0;                           // wall time of the work on this stage
  PhaseSeconds phases;                               // of this step
  StageMemory memory_peak;
  SnapshotReport snapshot;
  std::string snapshot_note;  // why there is none, for the stage's own log; not sent
  bool shard_copied = false;  // as the command asked for; false: there was no room
  std::string copy_note;      // why it was not, as above
};

struct WriteShardCommand {
  Fence fence;         // step: the checkpoint's
  std::string folder;  // exists; the coordinator made it under the checkpoint root
  // If not empty: save these shards of the snapshot of step fence.step, held under the key, instead
  // of the cell's.
  std::vector<std::string> snapshot_files;
  std::string snapshot_key;
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_CONTROL_H_
