// HostSource: one mini-batch given as arrays by the names of a network's inputs, as a file for
// comparisons has it.
// Ownership: owns the arrays.  Threads: any.
// Units and shapes: arrays of the whole mini-batch, [N, ...]; ids are I32, all else F32.
// Errors:    Open answers INVALID_ARGUMENT naming the input, what it is and what the network wants.
#ifndef STAGECOACH_TESTS_ORACLE_HOST_SOURCE_H_
#define STAGECOACH_TESTS_ORACLE_HOST_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "network/network.h"
#include "stage/data/batch_source.h"

namespace stagecoach {

class HostSource final : public BatchSource {
 public:
  // Every input of the network, out of a safetensors file; ids may be I64 there too.
  static absl::StatusOr<std::shared_ptr<HostSource>> Open(const std::string& path,
                                                          const Network& network,
                                                          int64_t micro_batches);
  // Zeros, so that a network without data can be built.
  static std::shared_ptr<HostSource> Nothing();

  int64_t samples() const { return samples_; }
  const DatasetManifest& manifest() const override { return manifest_; }
  absl::StatusOr<HostBatch> Train(uint64_t step, MicroBatchId micro_batch,
                                  std::span<const std::string> names) const override;
  absl::StatusOr<HostBatch> Evaluation(uint64_t batch, MicroBatchId micro_batch,
                                       std::span<const std::string> names) const override {
    return Train(batch, micro_batch, names);
  }
  int64_t evaluation_batches() const override { return 1; }

 private:
  HostSource() = default;

  int64_t samples_ = 0, micro_batches_ = 1;
  Lengths lengths_;  // the largest
  std::map<std::string, std::vector<std::byte>> arrays_;
  DatasetManifest manifest_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_ORACLE_HOST_SOURCE_H_
