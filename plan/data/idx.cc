#include "plan/data/idx.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/field_check.h"
#include "base/gzip.h"
#include "plan/data/idx_header.h"
#include "plan/data_kinds.h"

namespace stagecoach {
namespace {

class Idx final : public FieldKindOf<DataKind, IdxData> {
 public:
  std::vector<DataInput> Inputs() const override {
    return {{.name = "images", .ids = false, .extents = {"height", "width", "channels"}},
            {.name = "labels", .ids = true, .extents = {}}};
  }

  std::vector<std::string> FileFields() const override {
    return {"images", "labels", "test_images", "test_labels"};
  }

  absl::Status CheckInputs(const DataSpec& data, const Network&) const override {
    const auto idx = data.As<IdxData>();
    if (idx.test_images.empty() == idx.test_labels.empty()) return absl::OkStatus();
    const bool images = idx.test_images.empty();
    return FieldError(absl::StrCat("data.idx.", images ? "test_images" : "test_labels"), "\"\"",
                      absl::StrCat("must be given with ", images ? "test_labels" : "test_images",
                                   ", or neither"));
  }

  absl::Status CheckFile(const JobSpec& spec, const Network& network, const DataFile& file,
                         std::string_view head, int64_t bytes) const override {
    const std::string where =
        absl::StrCat(DataFieldPath(spec.data, file), " = \"", file.path, "\"");
    const bool images = absl::EndsWith(file.field, "images");
    ASSIGN_OR_RETURN(const std::string unpacked, UnpackedIdxHead(where, head));
    ASSIGN_OR_RETURN(
        const IdxHeader header,
        ParseIdxHeader(where, images ? IdxContent::kImages : IdxContent::kLabels, unpacked));
    RETURN_IF_ERROR(LooksLikeGzip(head) ? CheckPackedIdxSize(where, header, bytes)
                                        : CheckIdxSize(where, header, bytes));
    return images ? CheckIdxImages(where, header, spec, network) : absl::OkStatus();
  }
};

}  // namespace

const DataKind* IdxDataKind() {
  static const auto* const kind = new Idx;
  return kind;
}

}  // namespace stagecoach
