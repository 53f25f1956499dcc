// TargetWeights: the weights of the targets of a network's objective. They come from the data
// source's weights of samples and from the targets' classes, which may be masks. They are computed
// on the host, and never from images.
// Ownership: borrows the network.
// Threads:   any.
// Units and shapes: one number a target, or a sample where targets are numbers (LossWeightsType).
#ifndef STAGECOACH_STAGE_EXECUTOR_TARGET_WEIGHTS_H_
#define STAGECOACH_STAGE_EXECUTOR_TARGET_WEIGHTS_H_

#include <string>
#include <vector>

#include "network/network.h"
#include "stage/data/batch_source.h"

namespace stagecoach {

class TargetWeights {
 public:
  explicit TargetWeights(const Network& network);

  // Inputs of the data source that the weights follow from; empty: every target weighs 1.
  const std::vector<std::string>& names() const { return names_; }
  // The weights of a micro-batch, which has the arrays of `names`. An ignored target weighs 0.
  std::vector<float> Of(const HostBatch& batch) const;
  // How many terms of the loss share one weight: all of a sample where targets are numbers, 1 where
  // they are classes.
  int64_t terms() const { return terms_; }

 private:
  float OfClass(int32_t id) const;

  const Objective& objective_;
  std::vector<std::string> names_;
  bool reads_targets_ = false;
  int64_t terms_ = 1;  // of a weight
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_EXECUTOR_TARGET_WEIGHTS_H_
