#include "network/zoo/amoebanet/amoebanet_frame.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "network/layers/dropout.h"
#include "network/layers/linear.h"
#include "network/layers/norms.h"
#include "network/layers/pools.h"
#include "network/zoo/amoebanet/amoebanet_auxiliary.h"
#include "network/zoo/image_network_writer.h"

namespace stagecoach {
namespace {

// Of the reference's first convolution, for any D.
constexpr int64_t kReferenceStemChannels = 32;

using Values = std::vector<ValueId>;

class FrameWriter {
 public:
  FrameWriter(const AmoebanetFields& fields, const AmoebanetFrame& frame, const std::string& path)
      : fields_(fields),
        frame_(frame),
        path_(path),
        torchgpipe_(frame.variant == AmoebanetVariant::kTorchgpipe),
        writer_({fields.image, fields.classes},
                BatchNormSpec{.epsilon = torchgpipe_ ? 1e-5 : 1e-3, .momentum = fields.momentum},
                path) {}

  absl::StatusOr<Network> Write() {
    RETURN_IF_ERROR(CheckCounts());
    RETURN_IF_ERROR(CheckAuxiliary());
    const int64_t d = fields_.filters;
    RETURN_IF_ERROR(AddStem());
    if (fields_.stem == AmoebanetStem::kImagenet) {
      RETURN_IF_ERROR(AddReduction(torchgpipe_ ? d / 2 : d / 4));
      RETURN_IF_ERROR(AddReduction(torchgpipe_ ? d : d / 2));
    }
    for (int section = 0; section < 3; ++section) {
      const int64_t channels = d << section;
      if (section > 0) RETURN_IF_ERROR(AddReduction(channels));
      for (int64_t i = 0; i < fields_.layers / 3; ++i) {
        const bool last = section == 1 && i + 1 == fields_.layers / 3;
        RETURN_IF_ERROR(AddCell("normal_cell", frame_.normal, {.channels = channels},
                                last && fields_.auxiliary_weight > 0));
      }
    }
    RETURN_IF_ERROR(AddHead());
    return writer_.Finish(last_, auxiliary_, fields_.auxiliary_weight);
  }

 private:
  absl::Status CheckCounts() const {
    if (fields_.layers % 3 != 0) {
      return FieldError(path_ + ".layers", absl::StrCat(fields_.layers),
                        "must be a multiple of 3, as a third of the cells is in each section");
    }
    // The narrowest cell halves and quarters its channels.
    const bool small = fields_.stem == AmoebanetStem::kSmall;
    const int64_t factor = small ? 4 : torchgpipe_ ? 8 : 16;
    if (fields_.filters % factor == 0) return absl::OkStatus();
    return FieldError(path_ + ".filters", absl::StrCat(fields_.filters),
                      absl::StrCat("must be a multiple of ", factor, " with this stem"));
  }

  absl::Status CheckAuxiliary() const {
    if (fields_.auxiliary_weight > 0 || fields_.auxiliary_scale == 1) return absl::OkStatus();
    return FieldError(path_ + ".auxiliary_scale", absl::StrCat(fields_.auxiliary_scale),
                      "there is no auxiliary head to scale: give auxiliary_weight, as 0.4, or "
                      "leave it out");
  }

  absl::Status AddStem() {
    const bool small = fields_.stem == AmoebanetStem::kSmall;
    const auto write = [&](const Values& in, LayerPieces& layer) -> absl::StatusOr<ValueId> {
      ConvolutionSpec convolution = Square(fields_.filters, 3);
      if (!small) {
        convolution.stride = {2};
        convolution.out = torchgpipe_ ? fields_.filters / 4 : kReferenceStemChannels;
        if (!torchgpipe_) convolution.padding = {0};
      }
      const ValueId x = torchgpipe_ && !small ? layer.Relu(in[0]) : in[0];
      return layer.AddConvolution(convolution, "", x);
    };
    ASSIGN_OR_RETURN(last_, writer_.Add("stem", FunctionOf(small ? "small_stem" : "imagenet_stem"),
                                        {writer_.images()}, write));
    before_ = last_;
    return absl::OkStatus();
  }

  absl::Status AddReduction(int64_t channels) {
    const Shape& image = writer_.type(last_).shape;
    if (image[0] % 2 != 0 || image[1] % 2 != 0) {
      const char* sides = fields_.stem == AmoebanetStem::kSmall ? "multiples of 4"
                          : torchgpipe_                         ? "multiples of 32"
                                        : "1 or 2 more than multiples of 32, as 225";
      return FieldError(
          path_ + ".image", absl::StrCat(fields_.image[0], "x", fields_.image[1]),
          absl::StrCat("a reduction cell cannot halve the ", image[0], "x", image[1],
                       " that is left of it; give a height and a width that are ", sides));
    }
    return AddCell("reduction_cell", frame_.reduction, {.channels = channels, .stride = 2});
  }

  absl::Status AddCell(const std::string& label, const CellTable& table, CellShape shape,
                       bool has_auxiliary = false) {
    shape.average_for_max = torchgpipe_;
    ++cells_;
    shape.drop_path =
        fields_.drop_path * static_cast<double>(cells_) / static_cast<double>(AllCells());
    const bool first = before_ == last_;
    shape.keep_second = first && !torchgpipe_;
    const auto write = [&](const Values& in, LayerPieces& layer) -> absl::StatusOr<Values> {
      ASSIGN_OR_RETURN(const ValueId y, WriteCell(table, shape, in.front(), in.back(), layer));
      if (!has_auxiliary) return Values{y};
      const AuxiliaryHead head{fields_.classes, fields_.auxiliary_scale};
      ASSIGN_OR_RETURN(const ValueId logits, WriteAuxiliaryHead(head, y, layer));
      return Values{y, logits};
    };
    std::vector<WireId> inputs = {last_};
    if (!first) inputs.push_back(before_);
    before_ = last_;
    const std::string name = has_auxiliary ? label + "(auxiliary_head)" : label;
    ASSIGN_OR_RETURN(
        const std::vector<WireId> outputs,
        writer_.AddTuple(name, FunctionOf(absl::StrCat(name, ":", shape.channels)), inputs, write));
    last_ = outputs[0];
    if (has_auxiliary) auxiliary_ = outputs[1];
    return absl::OkStatus();
  }

  absl::Status AddHead() {
    const auto write = [&](const Values& in, LayerPieces& layer) -> absl::StatusOr<ValueId> {
      const ValueId x = torchgpipe_ ? in[0] : layer.Relu(in[0]);
      ASSIGN_OR_RETURN(ValueId y, layer.Add(GlobalPoolSpec{}, "global_pool", x));
      ASSIGN_OR_RETURN(y, layer.Add(DropoutSpec{fields_.dropout}, "dropout", y));
      return layer.Add(LinearSpec{.out = fields_.classes}, "linear", y);
    };
    ASSIGN_OR_RETURN(last_, writer_.Add("head", FunctionOf("head"), {last_}, write));
    return absl::OkStatus();
  }

  // With reductions, two of them in the stem for ImageNet.
  int64_t AllCells() const {
    return fields_.layers + (fields_.stem == AmoebanetStem::kSmall ? 2 : 4);
  }

  std::string FunctionOf(const std::string& what) const {
    return absl::StrCat(frame_.name, torchgpipe_ ? ":torchgpipe:" : ":", what);
  }

  const AmoebanetFields& fields_;
  const AmoebanetFrame& frame_;
  const std::string path_;
  const bool torchgpipe_;
  ImageNetworkWriter writer_;
  int64_t cells_ = 0;     // so far
  WireId last_, before_;  // what the last layer gave, and the one before it
  WireId auxiliary_;      // logits, if there is such a head
};

}  // namespace

absl::StatusOr<Network> WriteAmoebanet(const AmoebanetFields& fields, const AmoebanetFrame& frame,
                                       const std::string& path) {
  RETURN_IF_ERROR(CheckImageShape({fields.image, fields.classes}, path));
  return FrameWriter(fields, frame, path).Write();
}

}  // namespace stagecoach
