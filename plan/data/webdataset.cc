#include "plan/data/webdataset.h"

#include "plan/job/data_kinds.h"

namespace stagecoach {
namespace {

class WebDataset final : public FieldKindOf<DataKind, WebDatasetData> {
 public:
  std::vector<DataInput> Inputs() const override { return PictureInputs(); }
  std::vector<std::string> FileFields() const override { return {}; }
  std::vector<std::string> FolderFields() const override { return {"train", "test"}; }
  std::optional<PictureFields> Pictures(const DataSpec& data) const override {
    return data.As<WebDatasetData>().pictures;
  }
  absl::Status CheckInputs(const DataSpec& data, const Network& network) const override {
    return CheckPictureFields(WebDatasetData::kKind, data.As<WebDatasetData>().pictures, network);
  }
  absl::Status CheckFile(const JobSpec&, const Network&, const DataFile&, std::string_view,
                         int64_t) const override {
    return absl::OkStatus();  // it has folders alone
  }
};

}  // namespace

const DataKind* WebDatasetDataKind() {
  static const auto* const kind = new WebDataset;
  return kind;
}

}  // namespace stagecoach
