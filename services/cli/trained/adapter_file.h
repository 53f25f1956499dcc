// AdapterFile: the exported weights of a job with adapters: a safetensors file of A and B of each
// (network/passes/lora.h).
// Ownership: owns the open file.  Threads: one thread.
// Errors:    DATA_LOSS naming file and tensor: it is not of this network, or damaged.
#ifndef STAGECOACH_SERVICES_CLI_TRAINED_ADAPTER_FILE_H_
#define STAGECOACH_SERVICES_CLI_TRAINED_ADAPTER_FILE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoint/files/file_system.h"
#include "checkpoint/safetensors/safetensors.h"
#include "network/passes/lora.h"

namespace stagecoach {

class AdapterFile {
 public:
  // network: with adapters. Compares all names and shapes, and the file's digest.
  static absl::StatusOr<AdapterFile> Open(FileSystem& files, const std::string& path,
                                          const Network& network);
  const std::vector<Adapter>& adapters() const { return adapters_; }
  // Digest of the weights that they were trained with; empty: unknown.
  std::string base_sha256() const;
  absl::StatusOr<std::vector<float>> Read(const std::string& name);
  const Shape& ShapeOf(const std::string& name) const { return reader_.Find(name)->shape; }

 private:
  AdapterFile(std::string path, SafetensorsReader reader, std::vector<Adapter> adapters)
      : path_(std::move(path)), reader_(std::move(reader)), adapters_(std::move(adapters)) {}

  std::string path_;
  SafetensorsReader reader_;
  std::vector<Adapter> adapters_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_TRAINED_ADAPTER_FILE_H_
