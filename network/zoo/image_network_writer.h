// ImageNetworkWriter: writes a network on images with a label each, layer by layer. Layers consist
// of pieces with a norm behind each convolution.
// Errors: INVALID_ARGUMENT with the path of the network in the job; the writer may not be used
//         after one.
#ifndef STAGECOACH_NETWORK_ZOO_IMAGE_NETWORK_WRITER_H_
#define STAGECOACH_NETWORK_ZOO_IMAGE_NETWORK_WRITER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "network/network_builder.h"
#include "network/zoo/layer_chain.h"
#include "network/zoo/layer_pieces.h"

namespace stagecoach {

class ImageNetworkWriter {
 public:
  // The shape was checked (network/zoo/layer_chain.h).
  ImageNetworkWriter(const ImageShape& shape, const LayerSpec& norm, std::string path);

  WireId images() const { return images_; }
  const ValueType& type(WireId id) const { return builder_.type(id); }
  // `label` and `function`: NetworkLayer's.
  using Write = std::function<absl::StatusOr<ValueId>(const std::vector<ValueId>& inputs,
                                                      LayerPieces& layer)>;
  absl::StatusOr<WireId> Add(const std::string& label, const std::string& function,
                             const std::vector<WireId>& inputs, const Write& write);
  // Writes a layer that gives several values.
  using WriteTuple = std::function<absl::StatusOr<std::vector<ValueId>>(
      const std::vector<ValueId>& inputs, LayerPieces& layer)>;
  absl::StatusOr<std::vector<WireId>> AddTuple(const std::string& label,
                                               const std::string& function,
                                               const std::vector<WireId>& inputs,
                                               const WriteTuple& write);
  // The auxiliary logits are Objective's, with their weight.
  absl::StatusOr<Network> Finish(WireId logits, WireId auxiliary = WireId(),
                                 double auxiliary_weight = 0);

 private:
  const std::string path_;
  const LayerSpec norm_;
  NetworkBuilder builder_;
  WireId images_, labels_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_ZOO_IMAGE_NETWORK_WRITER_H_
