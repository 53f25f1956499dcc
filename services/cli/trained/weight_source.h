// WeightSource: finds weights, and the configuration they were trained with, by a name that a user
// gives. In this order, a name is
//   - a file: model.safetensors with its configuration beside it;
//   - a folder of exported weights: it holds these two files;
//   - a folder of Hugging Face's libraries (services/cli/hugging_face/model_folder.h): its
//     configuration is the job that `stagecoach import` writes of it;
//   - a checkpoint's folder (MANIFEST.json): it has no configuration, so the job file is required;
//   - the state folder of a `stagecoach local` run: the weights exported last; the others are
//     listed;
//   - otherwise the id of a job: the coordinator names its exported weights, or exports them. If
//     this machine does not see their folder, they are fetched.
// Adapters of a job are merged with the weights that it began with (merged_weights.h). Then the job is
// one without adapters. What the command reads of the job beside the weights, and a data set of the
// cluster has, is fetched (job_inputs.h).
// Ownership: weights put together from a checkpoint, merged or fetched, and an imported job, lie in temporary
//            folders, which go with the object.
// Threads:   the command's.
// Errors:    NOT_FOUND and INVALID_ARGUMENT say what was looked for, and what would do; DATA_LOSS
//            of a checkpoint; the coordinator's.
#ifndef STAGECOACH_SERVICES_CLI_TRAINED_WEIGHT_SOURCE_H_
#define STAGECOACH_SERVICES_CLI_TRAINED_WEIGHT_SOURCE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "network/names/weight_names.h"
#include "services/cli/client/job_client.h"
#include "services/cli/local/scratch_folder.h"

namespace stagecoach {

// Whether the source is a file or folder of this machine, and not a job's id.
bool NamesAPath(const std::string& source);
bool NamesACheckpoint(const std::string& source);

struct WeightRequest {
  std::string source;
  std::string job_file;   // for a checkpoint; empty: none
  std::string tokenizer;  // in place of a Hugging Face folder's; empty: the folder's
  int64_t step = -1;      // of a cluster's job; negative: the newest
  bool merged = true;     // adapters come with the weights that they adapt, as one network
  // What else of the job is read. If a data set of the cluster has it, it is fetched.
  bool reads_tokenizer = true;
  bool reads_config = false;  // of the folder that the job began with
  // Called only if the source is no path, or something is to be fetched.
  std::function<absl::StatusOr<std::unique_ptr<JobClient>>()> connect;
  StopSignal* stop = nullptr;  // ends a fetch; null: nothing does
};

class WeightSource {
 public:
  static absl::StatusOr<WeightSource> Find(const WeightRequest& request);

  // A file; of Hugging Face the folder.
  const std::string& weights_file() const { return weights_file_; }
  const std::string& names() const { return names_; }  // of its tensors (network/names)
  const std::string& config_file() const { return config_file_; }
  // The other exports that the name might mean, by their folders; the newest was taken.
  const std::vector<std::string>& passed_over() const { return passed_over_; }
  // The weights that adapters were merged with: the job's initialize.from. Empty: none were merged.
  const std::string& base() const { return base_; }
  // Lasting name: the weights' file, or what they were put together from.
  const std::string& name() const { return origin_.empty() ? weights_file_ : origin_; }

 private:
  WeightSource() = default;
  static absl::StatusOr<WeightSource> Locate(const WeightRequest& request);
  absl::Status FetchOthers(const WeightRequest& request);
  absl::Status Merge(const WeightRequest& request);
  // Writes the job into a folder that goes with this object.
  absl::Status TakeJob(const v1::JobSpec& job, std::shared_ptr<ScratchFolder> folder);
  static absl::StatusOr<WeightSource> InFolder(const std::string& folder);
  static absl::StatusOr<WeightSource> OfModelFolder(const WeightRequest& request);
  static absl::StatusOr<WeightSource> OfCheckpoint(const WeightRequest& request);
  static absl::StatusOr<WeightSource> OfJob(const WeightRequest& request);

  std::string weights_file_, config_file_, names_{kOwnNames};
  std::string origin_;  // checkpoint or adapters; empty: the file itself
  std::string base_;
  std::vector<std::string> passed_over_;
  std::vector<std::shared_ptr<ScratchFolder>> temporary_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_TRAINED_WEIGHT_SOURCE_H_
