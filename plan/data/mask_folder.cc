#include "plan/data/mask_folder.h"

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "plan/job/data_kinds.h"

namespace stagecoach {
namespace {

constexpr int64_t kMaskNumbers = 256;  // of a byte

absl::Status CheckMasks(const Network& network) {
  const WireId images = network.InputNamed("images"), masks = network.InputNamed("masks");
  if (!masks.valid()) return absl::OkStatus();
  const Shape& mask = network.wire(masks).type.shape;
  if (images.valid()) {
    const Shape& image = network.wire(images).type.shape;
    if (mask[0] != image[0] || mask[1] != image[1]) {
      return FieldError("data.mask_folder", "gives masks of the images' size",
                        absl::StrCat("the network reads images ", image.ToString(), " and masks ",
                                     mask.ToString(), ": take one that reads both alike"));
    }
  }
  const int64_t classes = network.input(masks).classes;
  if (classes <= kMaskNumbers) return absl::OkStatus();
  return FieldError("data.mask_folder", absl::StrCat("gives ", kMaskNumbers, " classes at most"),
                    absl::StrCat("the network has ", classes, " of them: take one with fewer"));
}

class MaskFolder final : public FieldKindOf<DataKind, MaskFolderData> {
 public:
  std::vector<DataInput> Inputs() const override {
    return {PictureInputs()[0], {.name = "masks", .ids = true, .extents = {"height", "width"}}};
  }
  std::vector<std::string> FileFields() const override { return {}; }
  std::vector<std::string> FolderFields() const override {
    return {"train", "masks", "test", "test_masks"};
  }
  std::optional<PictureFields> Pictures(const DataSpec& data) const override {
    return data.As<MaskFolderData>().pictures;
  }
  absl::Status CheckInputs(const DataSpec& data, const Network& network) const override {
    const auto fields = data.As<MaskFolderData>();
    if (fields.test.empty() != fields.test_masks.empty()) {
      const bool lacks_masks = fields.test_masks.empty();
      return FieldError(absl::StrCat("data.mask_folder.", lacks_masks ? "test_masks" : "test"),
                        "not given",
                        absl::StrCat("must name the folder of the ",
                                     lacks_masks ? "masks of `test`" : "pictures of `test_masks`"));
    }
    RETURN_IF_ERROR(CheckMasks(network));
    return CheckPictureFields(MaskFolderData::kKind, fields.pictures, network);
  }
  absl::Status CheckFile(const JobSpec&, const Network&, const DataFile&, std::string_view,
                         int64_t) const override {
    return absl::OkStatus();  // it has folders alone
  }
};

}  // namespace

const DataKind* MaskFolderDataKind() {
  static const auto* const kind = new MaskFolder;
  return kind;
}

}  // namespace stagecoach
