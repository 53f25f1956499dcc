// linear: y = x weight^T + bias. Parameters: weight [out, in], bias [out] if bias.
#ifndef STAGECOACH_NETWORK_LAYERS_LINEAR_H_
#define STAGECOACH_NETWORK_LAYERS_LINEAR_H_

#include <cstdint>

#include "network/limits.h"

namespace stagecoach {

struct LinearSpec {
  static constexpr const char* kKind = "linear";
  int64_t out = 0;  // width that it gives
  bool bias = true;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("out", out, 1, kMaxVocabulary);
    bool no_bias = !bias;  // what a job leaves out is false
    visit.Flag("no_bias", no_bias);
    bias = !no_bias;
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_LINEAR_H_
