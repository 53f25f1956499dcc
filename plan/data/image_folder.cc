#include "plan/data/image_folder.h"

#include "plan/job/data_kinds.h"

namespace stagecoach {
namespace {

class ImageFolder final : public FieldKindOf<DataKind, ImageFolderData> {
 public:
  std::vector<DataInput> Inputs() const override { return PictureInputs(); }
  std::vector<std::string> FileFields() const override { return {}; }
  std::vector<std::string> FolderFields() const override { return {"train", "test"}; }
  std::optional<PictureFields> Pictures(const DataSpec& data) const override {
    return data.As<ImageFolderData>().pictures;
  }
  absl::Status CheckInputs(const DataSpec& data, const Network& network) const override {
    return CheckPictureFields(ImageFolderData::kKind, data.As<ImageFolderData>().pictures, network);
  }
  absl::Status CheckFile(const JobSpec&, const Network&, const DataFile&, std::string_view,
                         int64_t) const override {
    return absl::OkStatus();  // it has folders alone
  }
};

}  // namespace

const DataKind* ImageFolderDataKind() {
  static const auto* const kind = new ImageFolder;
  return kind;
}

}  // namespace stagecoach
