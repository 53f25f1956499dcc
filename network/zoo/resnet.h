// resnet of He et al. (2015, 1512.03385): a stem, stages of blocks, mean over the image, linear.
// Each stage behind the first halves the image and doubles the channels. A block is relu(f(x) +
// shortcut(x)). The shortcut is x itself, or a 1x1 convolution with norm if the shape changes. No
// convolution has a bias. Every block is one layer, so a partition cuts between blocks.
//
// Two forms. `small` is that of section 4.2: three stages of (depth - 2) / 6 basic blocks. Their f
// is 3x3 convolution, norm, relu, 3x3 convolution, norm. `imagenet` is that of table 1, as
// torchvision has it, with four stages. Networks of 18 and 34 layers have basic blocks. Those of
// 50, 101 and 152 layers have bottlenecks: 1x1, 3x3 (with the stride: "v1.5") and 1x1 convolutions.
// A bottleneck gives four times the channels.
#ifndef STAGECOACH_NETWORK_ZOO_RESNET_H_
#define STAGECOACH_NETWORK_ZOO_RESNET_H_

#include <cstdint>
#include <vector>

#include "network/layers/norms.h"
#include "network/limits.h"

namespace stagecoach {

enum class ResnetForm { kSmall, kImagenet };

enum class ResnetStem {
  kOfForm,
  kSmall,     // 3x3 convolution
  kImagenet,  // 7x7 convolution and 3x3 maximum, each with a stride of 2
};

enum class ResnetNorm { kBatch, kGroup };

struct ResnetSpec {
  static constexpr const char* kNetwork = "resnet";
  std::vector<int64_t> image;  // height, width, channels
  int64_t classes = 0;
  int64_t depth = 20;  // 6n + 2, or one of table 1
  int64_t width = 0;   // channels of the first stage; 0: of the form, 16 or 64
  ResnetForm form = ResnetForm::kSmall;
  ResnetStem stem = ResnetStem::kOfForm;
  ResnetNorm norm = ResnetNorm::kBatch;
  int64_t groups = kDefaultNormGroups;  // of the norm
  bool zero_init_residual = false;      // the last norm of each block begins with a scale of 0
  double drop_path = 0;                 // rate at the last block; block i of n has i / n of it
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Counts("image", image, 1, kMaxImageSide, 3);
    visit.Count("classes", classes, 2, kMaxVocabulary);
    visit.Count("depth", depth, 8, 2 * (kMaxLayers - 2));
    visit.Count("width", width, 0, kMaxWidth / 4);
    visit.Choice("form", form, {"small", "imagenet"});
    visit.Choice("stem", stem, {"of_form", "small", "imagenet"});
    visit.Choice("norm", norm, {"batch", "group"});
    visit.Count("groups", groups, 1);
    visit.Flag("zero_init_residual", zero_init_residual);
    visit.Rate("drop_path", drop_path);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_ZOO_RESNET_H_
