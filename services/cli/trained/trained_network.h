// TrainedNetwork: a whole network with trained weights on one cell, for commands.
// Ownership: owns back end and cell.  Threads: one thread.
// Precision: the network's. Its weights are kept once, in the type that operations read, and nothing
//            is trained.
// Errors:    NOT_FOUND, DATA_LOSS naming file and tensor: the weights are not those of the network.
#ifndef STAGECOACH_SERVICES_CLI_TRAINED_TRAINED_NETWORK_H_
#define STAGECOACH_SERVICES_CLI_TRAINED_TRAINED_NETWORK_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "network/network.h"
#include "plan/job/job_spec.h"
#include "stage/backends/backend.h"
#include "stage/cell/cell.h"

namespace stagecoach {

struct TrainedNetwork {
  Network network;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Cell> cell;
};

// Weights by global name from an exported model.safetensors, which has no others.
absl::StatusOr<TrainedNetwork> LoadTrainedNetwork(const std::string& weights_file, Network network,
                                                  std::unique_ptr<Backend> backend);
// Weights of another program, by its names (stage/weights/weight_file.h).
absl::StatusOr<TrainedNetwork> LoadNamedNetwork(const InitializeSpec& weights, Network network,
                                                std::unique_ptr<Backend> backend);

// The objective's output for `samples` samples. inputs: those of the cell, on its back end.
absl::StatusOr<std::vector<float>> Evaluate(const TrainedNetwork& trained, Tensors inputs,
                                            int64_t samples);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_TRAINED_TRAINED_NETWORK_H_
