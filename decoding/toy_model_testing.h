// ToyModel: a language model for tests. The next token's logits are a function of seed and text.
#ifndef STAGECOACH_DECODING_TOY_MODEL_TESTING_H_
#define STAGECOACH_DECODING_TOY_MODEL_TESTING_H_

#include <cstdint>
#include <random>
#include <vector>

#include "base/errors/check.h"
#include "decoding/choice.h"

namespace stagecoach {

struct ToyModel {
  uint32_t seed = 0;
  int vocabulary = 4;
  bool ties = false;  // few different logits

  std::vector<float> Logits(const std::vector<int32_t>& text) const {
    uint32_t state = seed + 1;
    for (const int32_t token : text) state = state * 1664525 + static_cast<uint32_t>(token) + 1;
    std::mt19937 random(state);
    std::vector<float> logits(vocabulary);
    for (float& logit : logits) {
      logit = ties ? static_cast<float>(random() % 2) : static_cast<float>(random()) * 0x1p-30f;
    }
    return logits;
  }

  std::vector<Candidate> Next(const std::vector<int32_t>& text, int count) const {
    auto candidates = Likeliest(Logits(text), count, {});
    CHECK_OK(candidates.status());
    return *std::move(candidates);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_DECODING_TOY_MODEL_TESTING_H_
