#include "network/zoo/image_network_writer.h"

#include <utility>

#include "base/status.h"

namespace stagecoach {

ImageNetworkWriter::ImageNetworkWriter(const ImageShape& shape, const LayerSpec& norm,
                                       std::string path)
    : path_(std::move(path)),
      norm_(norm),
      builder_(kInitStddev, {.images = true}),
      images_(builder_.Input("images", ActivationType(Shape(shape.image)), 0)),
      labels_(builder_.Input("labels", {Element::kIds, Leading::kSamples, {}}, shape.classes)) {}

absl::StatusOr<WireId> ImageNetworkWriter::Add(const std::string& label,
                                               const std::string& function,
                                               const std::vector<WireId>& inputs,
                                               const Write& write) {
  const auto layer = [&](const std::vector<ValueId>& values,
                         LayerBuilder& builder) -> absl::StatusOr<std::vector<ValueId>> {
    LayerPieces pieces(path_, norm_, builder);
    ASSIGN_OR_RETURN(const ValueId y, write(values, pieces));
    return std::vector<ValueId>{y};
  };
  ASSIGN_OR_RETURN(const std::vector<WireId> outputs,
                   builder_.Add({label, function, path_}, inputs, layer));
  return outputs[0];
}

absl::StatusOr<Network> ImageNetworkWriter::Finish(WireId logits) {
  return builder_.Finish({.output = logits, .targets = labels_}, path_);
}

}  // namespace stagecoach
