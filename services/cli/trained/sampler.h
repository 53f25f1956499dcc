// Sampler: text from trained weights, token by token, on one cell that holds the whole network.
// Ownership: owns the network.  Threads: one thread.
// Determinism: token i is a pure function of weights, prompt, temperature, seed and i.
// Errors:    INVALID_ARGUMENT: prompt with ids beyond the vocabulary; a tokenizer of another number
//            of ids; a network that reads later
//            tokens (network/passes/later_rows.h); of the weights as trained_network.h.
#ifndef STAGECOACH_SERVICES_CLI_TRAINED_SAMPLER_H_
#define STAGECOACH_SERVICES_CLI_TRAINED_SAMPLER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "plan/job/job_spec.h"
#include "services/cli/trained/trained_network.h"
#include "stage/tokens/tokenizer.h"

namespace stagecoach {

struct SamplingOptions {
  int64_t tokens = 200;
  double temperature = 0.8;  // 0: always the likeliest
  uint64_t seed = 1;
};

class Sampler {
 public:
  // INVALID_ARGUMENT with the reason, unless this job's network can generate text.
  static absl::Status Check(const JobSpec& spec);

  // Weights by global name from an exported model.safetensors. tokenizer: the one that the job
  // trained with; null: tokens are bytes.
  static absl::StatusOr<std::unique_ptr<Sampler>> Load(
      const std::string& weights_file, const JobSpec& spec, std::unique_ptr<Backend> backend,
      std::unique_ptr<const Tokenizer> tokenizer = nullptr);

  // Passes the bytes one by one to `on_byte`, which returns false to end. The network sees the last
  // `context` tokens.
  absl::Status Generate(const std::string& prompt, const SamplingOptions& options,
                        const std::function<bool(char)>& on_byte);
  int64_t generated() const { return generated_; }  // tokens of the last Generate

 private:
  Sampler(TrainedNetwork trained, std::unique_ptr<const Tokenizer> tokenizer);
  // Logits of the token after `history`.
  absl::StatusOr<std::vector<float>> NextLogits(std::span<const int32_t> history);

  const TrainedNetwork trained_;
  const std::unique_ptr<const Tokenizer> tokenizer_;
  int64_t generated_ = 0;
};

// The token that `uniform` in [0, 1) falls on under softmax(logits / temperature).
int32_t ChooseToken(std::span<const float> logits, double temperature, double uniform);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_TRAINED_SAMPLER_H_
