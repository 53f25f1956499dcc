// DecodingNetwork: a whole network with trained weights on one cell, ready to write text token by
// token, for commands.
// Ownership: owns back end, cell and tokenizer.  Threads: one thread.
// Precision: as trained_network.h.
// Errors:    INVALID_ARGUMENT: the job's network cannot write text; a tokenizer of another number of
//            ids, or without the begin or end that is needed. Of the weights as trained_network.h.
#ifndef STAGECOACH_SERVICES_CLI_TRAINED_DECODING_NETWORK_H_
#define STAGECOACH_SERVICES_CLI_TRAINED_DECODING_NETWORK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "plan/job/job_spec.h"
#include "services/cli/trained/trained_network.h"
#include "stage/decoding/local_token_model.h"
#include "stage/tokens/tokenizer.h"

namespace stagecoach {

struct DecodingNetwork {
  TrainedNetwork trained;
  std::unique_ptr<const Tokenizer> tokenizer;  // null: tokens are bytes
  int64_t context = 0;

  // A model with a pool of so many rows, whose steps have so many. It borrows cell and back end of
  // this network. RESOURCE_EXHAUSTED: there is no memory for them.
  absl::StatusOr<std::unique_ptr<TokenModel>> Model(int64_t pool_rows, int64_t step_rows) const;
};

enum class Writes { kText, kTranslations };

// The job's network, if it can write that. The reason names its kind.
absl::StatusOr<Network> NetworkThatWrites(Writes writes, const JobSpec& spec,
                                          Precision precision = Precision::kFloat32);

// weights: an exported model.safetensors with our names, or those of another program. network:
// NetworkThatWrites'.
absl::StatusOr<DecodingNetwork> LoadDecodingNetwork(Writes writes, const InitializeSpec& weights,
                                                    Network network,
                                                    std::unique_ptr<Backend> backend,
                                                    std::unique_ptr<const Tokenizer> tokenizer);

// Of the job's data; empty: it has none.
std::string TokenizerPathOf(const DataSpec& data);
// The tokenizer that the job was trained with, or the one of that path. Null: tokens are bytes.
absl::StatusOr<std::unique_ptr<const Tokenizer>> TokenizerOfJob(const JobSpec& spec,
                                                                const std::string& path);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_TRAINED_DECODING_NETWORK_H_
