// The reader of data.mask_folder (plan/data/mask_folder.h). Files are opened when they are needed: the picture by who reads
// images, with the mask's header to compare sizes, the mask by who reads masks.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/utf8.h"
#include "plan/data/mask_folder.h"
#include "stage/data/formats/class_folders.h"
#include "stage/data/listed_pictures.h"
#include "stage/data/open_source.h"
#include "stage/data/picture_source.h"
#include "stage/pictures/decode.h"

namespace stagecoach {
namespace {

// What a pixel of a mask may be.
struct MaskNumbers {
  int64_t classes = 0;
  int64_t ignored = -1;
  bool Has(uint8_t id) const { return id < classes || id == ignored; }
};

MaskNumbers NumbersOf(const Network& network) {
  const WireId masks = network.InputNamed(kPictureMasks);
  if (!masks.valid()) return {.classes = 256};
  return {.classes = network.input(masks).classes,
          .ignored = network.objective.ignored.value_or(-1)};
}

std::string WithoutExtension(const std::string& path) { return path.substr(0, path.rfind('.')); }

// Pictures and masks of two lists.
class MaskedPictures final : public PictureSet {
 public:
  struct Pair {
    int64_t picture = 0, mask = 0;  // places in their lists
  };
  MaskedPictures(ClassFolders pictures, ClassFolders masks, std::vector<Pair> pairs,
                 MaskNumbers numbers)
      : pictures_(std::move(pictures)),
        masks_(std::move(masks)),
        pairs_(std::move(pairs)),
        numbers_(numbers) {}

  int64_t count() const override { return static_cast<int64_t>(pairs_.size()); }
  int32_t label(int64_t) const override { return 0; }
  absl::StatusOr<Picture> Read(int64_t i, int64_t channels) const override {
    const auto [place, of_mask] = At(i);
    ASSIGN_OR_RETURN(const std::vector<uint8_t> file, pictures_.Read(place));
    ASSIGN_OR_RETURN(Picture picture,
                     Annotate(DecodePicture(file, channels), pictures_.Where(place)));
    ASSIGN_OR_RETURN(const std::vector<uint8_t> head, masks_.Read(of_mask, kPngHeadBytes));
    ASSIGN_OR_RETURN(const PictureSize size, Annotate(PngSize(head), masks_.Where(of_mask)));
    if (size == PictureSize{picture.height, picture.width}) return picture;
    return absl::InvalidArgumentError(absl::StrCat(
        masks_.Where(of_mask), ": ", size.width, " x ", size.height, " pixels; its picture, ",
        pictures_.Where(place), ", has ", picture.width, " x ", picture.height));
  }
  absl::StatusOr<Picture> ReadMask(int64_t i) const override {
    const int64_t place = At(i).mask;
    ASSIGN_OR_RETURN(const std::vector<uint8_t> file, masks_.Read(place));
    ASSIGN_OR_RETURN(Picture mask, Annotate(DecodeMask(file), masks_.Where(place)));
    for (size_t at = 0; at < mask.bytes.size(); ++at) {
      if (numbers_.Has(mask.bytes[at])) continue;
      const auto width = static_cast<size_t>(mask.width);
      return absl::InvalidArgumentError(absl::StrCat(
          masks_.Where(place), ": ", mask.bytes[at], " in row ", at / width, ", column ",
          at % width, ", is not below the ", numbers_.classes,
          " classes; mend the mask, or ignore that number (model.objective.cross_entropy."
          "ignore_index)"));
    }
    return mask;
  }
  absl::Status Check(int64_t i) const override {
    RETURN_IF_ERROR(Read(i, 3).status());
    return ReadMask(i).status();
  }

 private:
  Pair At(int64_t i) const { return pairs_[static_cast<size_t>(i)]; }

  const ClassFolders pictures_, masks_;
  const std::vector<Pair> pairs_;
  const MaskNumbers numbers_;
};

struct FolderNames {
  const char *pictures_field, *masks_field;
  const std::string &pictures, &masks;
};

absl::StatusOr<std::shared_ptr<const PictureSet>> AddFolders(const DataRoots& roots,
                                                             const FolderNames& names,
                                                             const MaskNumbers& numbers,
                                                             PictureLists* lists) {
  ASSIGN_OR_RETURN(ClassFolders pictures,
                   ClassFolders::ListWithoutClasses(roots, names.pictures_field, names.pictures));
  ASSIGN_OR_RETURN(ClassFolders masks,
                   ClassFolders::ListWithoutClasses(roots, names.masks_field, names.masks));
  std::map<std::string, int64_t> left;  // masks that no picture has taken
  for (int64_t i = 0; i < masks.count(); ++i) {
    if (left.emplace(WithoutExtension(masks.path(i)), i).second) continue;
    RETURN_IF_ERROR(lists->Bad(
        absl::InvalidArgumentError(absl::StrCat(masks.Where(i), ": a second mask of its name"))));
  }
  std::vector<MaskedPictures::Pair> pairs;
  for (int64_t i = 0; i < pictures.count(); ++i) {
    const std::string name = WithoutExtension(pictures.path(i));
    const auto found = left.find(name);
    if (found != left.end()) {
      pairs.push_back({.picture = i, .mask = found->second});
      left.erase(found);
      continue;
    }
    RETURN_IF_ERROR(lists->Bad(absl::InvalidArgumentError(absl::StrCat(
        pictures.Where(i), ": has no mask, ", masks.Where(name + ".png"), " is not there"))));
  }
  for (const auto& [name, i] : left) {
    RETURN_IF_ERROR(lists->Bad(absl::InvalidArgumentError(
        absl::StrCat(masks.Where(i), ": a mask without a picture in ", pictures.Where()))));
  }
  lists->Sum(pictures);
  lists->Sum(masks);
  return lists->AddSet(std::make_shared<const MaskedPictures>(std::move(pictures), std::move(masks),
                                                              std::move(pairs), numbers));
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> OpenMaskFolderSource(
    const JobSpec& spec, const Network& network, std::span<const std::string> reads,
    const DataRoots& roots) {
  const auto data = spec.data.As<MaskFolderData>();
  const MaskNumbers numbers = NumbersOf(network);
  PictureLists lists(data.on_bad_record, data.pictures.decode_threads);
  const FolderNames train_names = {"data.mask_folder.train", "data.mask_folder.masks", data.train,
                                   data.masks};
  std::shared_ptr<const PictureSet> train, test;
  ASSIGN_OR_RETURN(train, AddFolders(roots, train_names, numbers, &lists));
  if (!data.test.empty()) {
    const FolderNames test_names = {"data.mask_folder.test", "data.mask_folder.test_masks",
                                    data.test, data.test_masks};
    ASSIGN_OR_RETURN(test, AddFolders(roots, test_names, numbers, &lists));
  }
  PictureSourceParts parts = lists.Parts(SplitPictures(std::move(train), std::move(test)));
  parts.mask_border =
      static_cast<uint8_t>(numbers.ignored >= 0 && numbers.ignored < 256 ? numbers.ignored : 0);
  return MakePictureSource(spec, network, data.pictures, reads, std::move(parts));
}

}  // namespace stagecoach
