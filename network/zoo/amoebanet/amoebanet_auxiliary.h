// The auxiliary head of an AmoebaNet, as in tensorflow/tpu, models/official/amoeba_net. It is a
// classifier of its own on the output of a cell inside of the network. So the layers in front get a
// gradient that has not come through all others. The head is ReLU; mean over windows of 5x5 with a
// stride of 3; 1x1 convolution; a convolution over the rest of the image; linear. Batch norm and
// ReLU follow each convolution. The second norm has one place of each image, so a micro-batch needs
// two images. The head belongs to the cell's layer. All other layers, their names and their initial
// values are the same without it.
// Errors: INVALID_ARGUMENT with the path of the network in the job.
#ifndef STAGECOACH_NETWORK_ZOO_AMOEBANET_AMOEBANET_AUXILIARY_H_
#define STAGECOACH_NETWORK_ZOO_AMOEBANET_AMOEBANET_AUXILIARY_H_

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

#endif  // STAGECOACH_NETWORK_ZOO_AMOEBANET_AMOEBANET_AUXILIARY_H_
