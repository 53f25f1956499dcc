// vit: a Vision Transformer (Dosovitskiy et al. 2021, 2010.11929), as vit_base_patch16_224 of
// torchvision and timm. Its parts in order:
//   a convolution of patches with bias, a class token in front of them, learned positions, dropout
//   per block residual(layer_norm, attention without a mask, dropout)
//             and residual(layer_norm, mlp with exact GELU, dropout)
//   layer_norm and linear of the class token
// Norms have epsilon 1e-6. L blocks give 2L + 2 layers. Parameters of the first: patch.weight
// [width, patch, patch, channels], patch.bias, class_token [width], position [patches + 1, width].
#ifndef STAGECOACH_NETWORK_ZOO_VIT_H_
#define STAGECOACH_NETWORK_ZOO_VIT_H_

#include <cstdint>
#include <vector>

#include "network/limits.h"
#include "operations/attributes.h"
#include "operations/images/window.h"

namespace stagecoach {

struct VitSpec {
  static constexpr const char* kNetwork = "vit";
  std::vector<int64_t> image;  // height, width, channels
  int64_t classes = 0;
  int64_t patch = 16;  // side of one; divides the image's
  int64_t layers = 0, width = 0, heads = 0;
  int64_t hidden = 0;            // width inside of the MLPs; 0: 4 * width
  double dropout = 0;            // behind positions, projections and GELUs
  double attention_dropout = 0;  // of the probabilities
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Counts("image", image, 1, kMaxImageSide, 3);
    visit.Count("classes", classes, 2, kMaxVocabulary);
    visit.Count("patch", patch, 1, kMaxWindow);
    visit.Count("layers", layers, 1, (kMaxLayers - 2) / 2);
    visit.Count("width", width, 1, kMaxWidth);
    visit.Count("heads", heads, 1, kMaxWidth);
    visit.Count("hidden", hidden, 0, kMaxHidden);
    visit.Rate("dropout", dropout);
    visit.Rate("attention_dropout", attention_dropout);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_ZOO_VIT_H_
