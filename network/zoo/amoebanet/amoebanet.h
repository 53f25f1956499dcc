// AmoebaNet (Real et al., 1802.01548), the image networks of GPipe (1811.06965, table 1). It is a
// stem, cells of `filters` channels, the mean over the image, and a linear. After a third and after
// two thirds of the cells comes a reduction cell. It halves the image and doubles the channels. A
// cell is a layer of the network. It reads the outputs of the last two cells, so two tensors are
// handed from stage to stage.
//
// x1 is the output of the last cell, x2 that of the one before. s0 is x1 with c channels. s1 is x2
// in the form of s0. If the image of x2 is larger, it goes through a factorized reduction.
// Otherwise it stays if it has c channels, or goes through ReLU, 1x1 convolution and batch norm.
// Behind them come five sums of two pieces each (network/zoo/amoebanet/amoebanet_cell.h). A cell
// gives some of them side by side. With an auxiliary head
// (network/zoo/amoebanet/amoebanet_auxiliary.h) the last cell in front of the second reduction
// gives logits too. They ride along to the loss.
#ifndef STAGECOACH_NETWORK_ZOO_AMOEBANET_AMOEBANET_H_
#define STAGECOACH_NETWORK_ZOO_AMOEBANET_AMOEBANET_H_

#include <cstdint>
#include <vector>

#include "network/limits.h"
#include "operations/norms/batch_norm.h"

namespace stagecoach {

enum class AmoebanetStem {
  kImagenet,  // a convolution with a stride of 2 and two reduction cells: an eighth of the image's extents
  kSmall,  // a convolution to `filters` channels, for small images
};

struct AmoebanetFields {
  std::vector<int64_t> image;  // height, width, channels
  int64_t classes = 0;
  int64_t layers = 0;   // normal cells, L
  int64_t filters = 0;  // channels of the first normal cell, D
  AmoebanetStem stem = AmoebanetStem::kImagenet;
  double dropout = 0;     // in front of the last linear layer
  double momentum = 0.1;  // of batch norm; the paper's is 0.0003
  // Rate at which an operation of the last cell is left out for a sample. Cell i of n has i / n of
  // it. The paper has 0.3.
  double drop_path = 0;
  double auxiliary_weight = 0;  // of the auxiliary head's loss; 0: there is no such head
  double auxiliary_scale = 1;   // of its channels
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Counts("image", image, 1, kMaxImageSide, 3);
    visit.Count("classes", classes, 2, kMaxVocabulary);
    visit.Count("layers", layers, 3, kMaxLayers - 6);
    visit.Count("filters", filters, 4, kMaxWidth / 16);
    visit.Choice("stem", stem, {"imagenet", "small"});
    visit.Rate("dropout", dropout);
    visit.Between("momentum", momentum, kMinMomentum, 1);
    visit.Rate("drop_path", drop_path);
    visit.ZeroOrBetween("auxiliary_weight", auxiliary_weight, kLeastAuxiliaryWeight,
                        kMostAuxiliaryWeight);
    visit.Between("auxiliary_scale", auxiliary_scale, 0.01, 16);
  }
};

// The published program that it follows.
enum class AmoebanetVariant {
  kReference,  // tensorflow/tpu, models/official/amoeba_net
  kTorchgpipe,  // kakaobrain/torchgpipe, benchmarks/models: "max_pool_3x3" is an average, wider stem cells
};

struct AmoebanetDSpec : AmoebanetFields {
  static constexpr const char* kNetwork = "amoebanet_d";
  AmoebanetVariant variant = AmoebanetVariant::kReference;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    AmoebanetFields::Visit(visit);
    visit.Choice("variant", variant, {"reference", "torchgpipe"});
  }
};

struct AmoebanetBSpec : AmoebanetFields {
  static constexpr const char* kNetwork = "amoebanet_b";
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_ZOO_AMOEBANET_AMOEBANET_H_
