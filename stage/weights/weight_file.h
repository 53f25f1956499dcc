// WeightFile: the safetensors file with a job's initial weights (JobSpec::initialize), or a folder of
// shards, by the names of the job's own parameters and states. Open compares the headers with the
// whole network, so every stage refuses the same file with the same words. It hashes all tensors.
// Numbers are read one array at a time, so a stage keeps only those of its cell. Each tensor is
// compared with its hash.
// Ownership: owns its files; borrows the ReadableFiles.  Threads: thread-compatible.
// Errors:    all name `initialize.from`, the file and the remedy. INVALID_ARGUMENT: no safetensors
//            file, or not the network's weights, or an export that is damaged;
//            FAILED_PRECONDITION: a file changed meanwhile; NOT_FOUND, PERMISSION_DENIED,
//            UNAVAILABLE: it cannot be read.
// See:       docs/job_files.md, "Weights to begin with".
#ifndef STAGECOACH_STAGE_WEIGHTS_WEIGHT_FILE_H_
#define STAGECOACH_STAGE_WEIGHTS_WEIGHT_FILE_H_

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoint/weight_shards.h"
#include "network/names/weight_names.h"
#include "plan/control.h"

namespace stagecoach {

class WeightFile {
 public:
  static absl::StatusOr<std::unique_ptr<WeightFile>> Open(ReadableFiles& files,
                                                          const InitializeSpec& spec,
                                                          const Network& network);

  const WeightsManifest& manifest() const { return manifest_; }
  // Reads the array of this parameter or state, as float32 in our layout, into as many `values`.
  // False: the job has its own values for it. Empty `values`: nothing is read.
  absl::StatusOr<bool> Read(const std::string& ours, std::span<float> values);
  // "begins with 159 of 161 arrays of /a/b.safetensors".
  std::string note() const;

 private:
  // An array of the network, and the tensors of its parts.
  struct Found {
    WeightName name;
    std::vector<const TensorEntry*> entries;
  };

  WeightFile(std::string path, WeightShards shards)
      : path_(std::move(path)), shards_(std::move(shards)) {}
  // Finds the job's arrays in the file, and checks that the file has no others.
  absl::Status Match(const InitializeSpec& spec, const WeightTable& table);
  absl::Status Hash();  // hashes all tensors, with ticks of progress
  // Checks that the copies of tied parameters are equal to them.
  absl::Status CheckCopies(const WeightTable& table) const;
  const TensorEntry* Find(const WeightPart& part) const;  // null if absent
  absl::StatusOr<std::vector<float>> ReadTensor(const TensorEntry& entry);
  std::string Where() const;

  const std::string path_;  // of the file, or of the folder
  WeightShards shards_;
  WeightsManifest manifest_;
  std::vector<std::string> digests_;    // of each tensor, in the order of shards_.tensors()
  std::map<std::string, Found> found_;  // by our names
  std::set<std::string> excepted_copies_;
  size_t arrays_ = 0;  // of the network
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_WEIGHTS_WEIGHT_FILE_H_
