// The auxiliary head of an AmoebaNet, as in tensorflow/tpu, models/official/amoeba_net: a classifier of its own on what a
// cell inside of the network gives, so that the layers in front get a gradient that has not come through all others:
// ReLU; mean over windows of 5x5 with a stride of 3; 1x1 convolution; a convolution over all that is left; linear. Batch
// norm and ReLU behind each convolution. The second norm has one place of each image, so a micro-batch needs two of them.
// It belongs to the cell's layer: all other layers, their names and what they begin with are the same without it.
// Errors: INVALID_ARGUMENT with the path of the network in the job.
#ifndef STAGECOACH_NETWORK_ZOO_AMOEBANET_AUXILIARY_H_
#define STAGECOACH_NETWORK_ZOO_AMOEBANET_AUXILIARY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "network/zoo/layer_pieces.h"

namespace stagecoach {

struct AuxiliaryHead {
  int64_t classes = 0;
  double scale = 1;  // of the channels of the convolutions, 128 and 768, rounded down
};

// Logits of the image x. Parameters are below "auxiliary.".
absl::StatusOr<ValueId> WriteAuxiliaryHead(const AuxiliaryHead& head, ValueId x,
                                           LayerPieces& layer);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_ZOO_AMOEBANET_AUXILIARY_H_
