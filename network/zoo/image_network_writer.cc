#include "network/zoo/image_network_writer.h"

#include <utility>

#include "base/errors/status.h"

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
  const auto tuple = [&](const std::vector<ValueId>& values,
                         LayerPieces& pieces) -> absl::StatusOr<std::vector<ValueId>> {
    ASSIGN_OR_RETURN(const ValueId y, write(values, pieces));
    return std::vector<ValueId>{y};
  };
  ASSIGN_OR_RETURN(const std::vector<WireId> outputs, AddTuple(label, function, inputs, tuple));
  return outputs[0];
}

absl::StatusOr<std::vector<WireId>> ImageNetworkWriter::AddTuple(const std::string& label,
                                                                 const std::string& function,
                                                                 const std::vector<WireId>& inputs,
                                                                 const WriteTuple& write) {
  const auto layer = [&](const std::vector<ValueId>& values, LayerBuilder& builder) {
    LayerPieces pieces(path_, norm_, builder);
    return write(values, pieces);
  };
  return builder_.Add({label, function, path_}, inputs, layer);
}

absl::StatusOr<Network> ImageNetworkWriter::Finish(WireId logits, WireId auxiliary,
                                                   double auxiliary_weight) {
  return builder_.Finish({.output = logits,
                          .targets = labels_,
                          .auxiliary = auxiliary,
                          .auxiliary_weight = auxiliary_weight},
                         path_);
}

}  // namespace stagecoach
