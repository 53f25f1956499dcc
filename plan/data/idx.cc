#include "plan/data/idx.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/files/gzip.h"
#include "plan/data/idx_header.h"
#include "plan/job/data_kinds.h"

namespace stagecoach {
namespace {

class Idx final : public FieldKindOf<DataKind, IdxData> {
 public:
  std::vector<DataInput> Inputs() const override {
    return {{.name = "images", .ids = false, .extents = {"height", "width", "channels"}},
            {.name = "labels", .ids = true, .extents = {}},
            {.name = "weights", .ids = false, .extents = {}}};
  }

  std::vector<std::string> FileFields() const override {
    return {"images", "labels", "test_images", "test_labels", "weights", "test_weights"};
  }

  std::optional<PictureFields> Pictures(const DataSpec& data) const override {
    const auto idx = data.As<IdxData>();
    return PictureFields{.mean = {idx.mean}, .deviation = {idx.deviation}};
  }

  std::string WeightsField() const override { return "weights"; }

  absl::Status CheckInputs(const DataSpec& data, const Network& network) const override {
    const auto idx = data.As<IdxData>();
    RETURN_IF_ERROR(CheckWeights(idx, network));
    RETURN_IF_ERROR(CheckColours("data.idx.", idx.pictures, network));
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
    const IdxContent content = ContentOf(file.field);
    ASSIGN_OR_RETURN(const std::string unpacked, UnpackedIdxHead(where, head));
    ASSIGN_OR_RETURN(const IdxHeader header, ParseIdxHeader(where, content, unpacked));
    RETURN_IF_ERROR(LooksLikeGzip(head) ? CheckPackedIdxSize(where, header, bytes)
                                        : CheckIdxSize(where, header, bytes));
    return content == IdxContent::kImages ? CheckIdxImages(where, header, spec, network)
                                          : absl::OkStatus();
  }

 private:
  static IdxContent ContentOf(const std::string& field) {
    if (absl::EndsWith(field, "images")) return IdxContent::kImages;
    return absl::EndsWith(field, "labels") ? IdxContent::kLabels : IdxContent::kWeights;
  }

  static absl::Status CheckWeights(const IdxData& idx, const Network& network) {
    const bool given = !idx.weights.empty(), read = network.InputNamed("weights").valid();
    if (given != read) {
      return FieldError("data.idx.weights", absl::StrCat("\"", idx.weights, "\""),
                        given ? "the network reads no weights: leave it out"
                              : "the network reads weights: give the IDX file of them");
    }
    if (idx.test_weights.empty() || (given && !idx.test_images.empty())) return absl::OkStatus();
    return FieldError("data.idx.test_weights", absl::StrCat("\"", idx.test_weights, "\""),
                      absl::StrCat("goes with ", given ? "test_images" : "weights",
                                   ": give them, or leave it out"));
  }
};

}  // namespace

const DataKind* IdxDataKind() {
  static const auto* const kind = new Idx;
  return kind;
}

}  // namespace stagecoach
