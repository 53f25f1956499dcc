// WeightFile: the safetensors file with a job's initial weights (JobSpec::initialize), or a folder of
// shards, by the names of the job's own parameters and states. Open compares the headers with the
// whole network, so every stage refuses the same file with the same words. Numbers are read one array
// at a time, so a stage reads and keeps only those of its cell. Their hashes go to the coordinator,
// which compares what all stages have read (coordinator/job/weights_check.h).
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

  // Reads the array of this parameter or state, as float32 in our layout, into as many `values`. A
  // vit's positions may be for another grid in the file (stage/weights/position_grid.h).
  // False: the job has its own values for it. Empty `values`: nothing is read. Reading the owner of a
  // tied parameter also compares the file's copies with it.
  absl::StatusOr<bool> Read(const std::string& ours, std::span<float> values);
  // What was read. Call it last: it compares the headers with those that Open saw.
  absl::StatusOr<WeightsRead> Finish() const;
  // For a log: "begins with 159 of 161 arrays from /a/b.safetensors", and a line for each array that
  // Read has resampled.
  std::vector<std::string> notes() const;

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
  // Finds the file's copies of tied parameters.
  absl::Status MatchCopies(const WeightTable& table);
  absl::Status CopiesDiffer(const std::string& ours, const TensorEntry& copy) const;
  const TensorEntry* Find(const WeightPart& part) const;
  // Another tensor with a name of the part; null: there is none.
  const TensorEntry* FindOther(const WeightPart& part, const TensorEntry& found) const;
  // Reads and hashes. The same tensor has the same hash each time.
  absl::StatusOr<std::string> ReadBytes(const TensorEntry& entry, std::span<std::byte> bytes);
  // As float32, in the file's layout.
  absl::Status ReadTensor(const TensorEntry& entry, std::span<float> numbers);
  absl::Status ReadPart(const Found& found, size_t index, std::span<float> values);
  absl::Status CheckCopies(const std::string& ours, const TensorEntry& owner);
  std::string Where() const;

  const std::string path_;  // of the file, or of the folder
  WeightShards shards_;
  std::map<std::string, std::string> read_;  // digests of the tensors that were read, by name
  std::map<std::string, Found> found_;       // by our names
  std::multimap<std::string, const TensorEntry*> copies_;  // by our names of their owners
  std::set<std::string> excepted_copies_;
  std::set<std::string> resampled_;  // what it was and is, of the arrays that were
  size_t arrays_ = 0;                // of the network
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_WEIGHTS_WEIGHT_FILE_H_
