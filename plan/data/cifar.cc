#include "plan/data/cifar.h"

#include "plan/job/data_kinds.h"

namespace stagecoach {
namespace {

class Cifar final : public FieldKindOf<DataKind, CifarData> {
 public:
  std::vector<DataInput> Inputs() const override { return PictureInputs(); }
  std::vector<std::string> FileFields() const override { return {}; }
  std::vector<std::string> FolderFields() const override { return {"folder"}; }
  std::optional<PictureFields> Pictures(const DataSpec& data) const override {
    return data.As<CifarData>().pictures;
  }
  absl::Status CheckInputs(const DataSpec& data, const Network& network) const override {
    return CheckPictureFields(CifarData::kKind, data.As<CifarData>().pictures, network);
  }
  absl::Status CheckFile(const JobSpec&, const Network&, const DataFile&, std::string_view,
                         int64_t) const override {
    return absl::OkStatus();  // it has folders alone
  }
};

}  // namespace

const DataKind* CifarDataKind() {
  static const auto* const kind = new Cifar;
  return kind;
}

}  // namespace stagecoach
