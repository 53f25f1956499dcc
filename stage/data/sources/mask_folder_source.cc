// The reader of data.mask_folder (plan/data/mask_folder.h). Files are opened when they are needed:
// the picture by who reads images, with the mask's header to compare sizes, the mask by who reads
// masks.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "plan/data/mask_folder.h"
#include "stage/data/formats/class_folders.h"
#include "stage/data/listed_pictures.h"
#include "stage/data/open_source.h"
#include "stage/data/picture_source.h"
#include "stage/pictures/decode.h"
#include "stage/pictures/orientation.h"

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

// Why a mask may not have this number, and what to do that does not spoil it.
std::string NumberRemedy(const Picture& mask, int id, const MaskNumbers& numbers) {
  const bool white = id == 255;
  const bool binary = std::all_of(mask.bytes.begin(), mask.bytes.end(),
                                  [](uint8_t byte) { return byte == 0 || byte == 255; });
  if (white && binary) {
    return "the mask has 0 and 255 alone, so 255 looks like the foreground of a binary mask: store "
           "it as 1";
  }
  if (white) {
    return "if 255 marks what has no class, set model.objective.cross_entropy.ignore_index: 255; "
           "else store it as the number of its class";
  }
  return absl::StrCat("store the numbers of the classes, 0 to ", numbers.classes - 1,
                      ", or give a network of more classes");
}

// Pictures and masks of two lists.
class MaskedPictures final : public PictureSet {
 public:
  struct Pair {
    int64_t picture = 0, mask = 0;  // places in their lists
  };
  // upright: both are turned as their EXIF says.
  MaskedPictures(ClassFolders pictures, ClassFolders masks, std::vector<Pair> pairs,
                 MaskNumbers numbers, bool upright)
      : pictures_(std::move(pictures)),
        masks_(std::move(masks)),
        pairs_(std::move(pairs)),
        numbers_(numbers),
        upright_(upright) {}

  int64_t count() const override { return static_cast<int64_t>(pairs_.size()); }
  int32_t label(int64_t) const override { return 0; }
  absl::StatusOr<Picture> Read(int64_t i, int64_t channels) const override {
    const auto [place, of_mask] = At(i);
    ASSIGN_OR_RETURN(const std::vector<uint8_t> file, pictures_.Read(place));
    ASSIGN_OR_RETURN(Picture picture, Annotate(upright_ ? DecodeUpright(file, channels)
                                                        : DecodePicture(file, channels),
                                               pictures_.Where(place)));
    const int64_t most = upright_ ? kExifHeadBytes : kPngHeadBytes;
    ASSIGN_OR_RETURN(const std::vector<uint8_t> head, masks_.Read(of_mask, most));
    ASSIGN_OR_RETURN(PictureSize size, Annotate(PngSize(head), masks_.Where(of_mask)));
    if (upright_ && OrientationOf(head) >= 5) std::swap(size.height, size.width);
    if (size == PictureSize{picture.height, picture.width}) return picture;
    return absl::InvalidArgumentError(
        absl::StrCat(masks_.Where(of_mask), ": ", size.width, " x ", size.height,
                     " pixels; its picture, ", pictures_.Where(place), ", has ", picture.width,
                     " x ", picture.height, TurnedText(OrientationOf(file))));
  }
  absl::StatusOr<Picture> ReadMask(int64_t i) const override {
    const int64_t place = At(i).mask;
    ASSIGN_OR_RETURN(const std::vector<uint8_t> file, masks_.Read(place));
    ASSIGN_OR_RETURN(Picture mask, Annotate(DecodeMask(file), masks_.Where(place)));
    for (size_t at = 0; at < mask.bytes.size(); ++at) {
      if (numbers_.Has(mask.bytes[at])) continue;
      const auto width = static_cast<size_t>(mask.width);
      return absl::InvalidArgumentError(
          absl::StrCat(masks_.Where(place), ": ", mask.bytes[at], " in row ", at / width,
                       ", column ", at % width, ", is not below the ", numbers_.classes,
                       " classes; ", NumberRemedy(mask, mask.bytes[at], numbers_)));
    }
    return upright_ ? Turned(std::move(mask), OrientationOf(file)) : mask;
  }
  absl::Status Check(int64_t i) const override {
    RETURN_IF_ERROR(Read(i, 3).status());
    return ReadMask(i).status();
  }

 private:
  Pair At(int64_t i) const { return pairs_[static_cast<size_t>(i)]; }
  std::string TurnedText(int orientation) const {
    if (orientation == 1 || upright_) return "";
    return absl::StrCat(", and notes EXIF orientation ", orientation,
                        "; if the mask is of the picture turned upright, set "
                        "data.mask_folder.exif_orientation: true");
  }

  const ClassFolders pictures_, masks_;
  const std::vector<Pair> pairs_;
  const MaskNumbers numbers_;
  const bool upright_;
};

struct FolderNames {
  const char *pictures_field, *masks_field;
  const std::string &pictures, &masks;
};

// Records that are bad in one way: one error, or each left out.
class BadOfAKind {
 public:
  BadOfAKind(PictureLists* lists, int64_t all, const char* what)
      : lists_(lists), all_(all), what_(what) {}
  void Add(std::string reason) { reasons_.push_back(std::move(reason)); }
  absl::Status Tell() const {
    if (reasons_.empty()) return absl::OkStatus();
    if (!lists_->skips()) {
      return absl::InvalidArgumentError(
          reasons_.size() == 1
              ? reasons_.front()
              : absl::StrCat(reasons_.front(), "; ", reasons_.size(), " of ", all_, " ", what_));
    }
    for (const std::string& reason : reasons_) {
      RETURN_IF_ERROR(lists_->Bad(absl::InvalidArgumentError(reason)));
    }
    return absl::OkStatus();
  }

 private:
  PictureLists* const lists_;
  const int64_t all_;
  const char* const what_;
  std::vector<std::string> reasons_;
};

// A network that ignores the foreground of binary masks learns that all is background.
void NoteIgnoredForeground(const PictureSet& set, const std::string& where,
                           const MaskNumbers& numbers, PictureLists* lists) {
  constexpr int64_t kMostMasks = 20;
  if (numbers.ignored < 0) return;
  const int64_t count = std::min(set.count(), kMostMasks);
  bool ignores = false;
  for (int64_t i = 0; i < count; ++i) {
    const absl::StatusOr<Picture> mask = set.ReadMask(i * set.count() / count);
    if (!mask.ok()) return;  // who needs it says why
    for (const uint8_t id : mask->bytes) {
      if (id != 0 && id != numbers.ignored) return;
      ignores = ignores || id == numbers.ignored;
    }
  }
  if (!ignores) return;
  lists->Note(absl::StrCat(
      where, ": masks have no class but 0 and the ignored ", numbers.ignored, " (", count,
      " looked at), so nothing but background can be learned; if ", numbers.ignored,
      " is the foreground of binary masks, store it as 1 and take "
      "ignore_index away"));
}

absl::StatusOr<std::shared_ptr<const PictureSet>> AddFolders(const DataRoots& roots,
                                                             const FolderNames& names,
                                                             const MaskNumbers& numbers,
                                                             bool reads_masks, bool upright,
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
  BadOfAKind maskless(lists, pictures.count(), "pictures have no mask");
  for (int64_t i = 0; i < pictures.count(); ++i) {
    const std::string name = WithoutExtension(pictures.path(i));
    const auto found = left.find(name);
    if (found != left.end()) {
      pairs.push_back({.picture = i, .mask = found->second});
      left.erase(found);
      continue;
    }
    maskless.Add(absl::StrCat(pictures.Where(i), ": has no mask, ", masks.Where(name + ".png"),
                              " is not there"));
  }
  RETURN_IF_ERROR(maskless.Tell());
  BadOfAKind pictureless(lists, masks.count(), "masks have no picture");
  for (const auto& [name, i] : left) {
    pictureless.Add(
        absl::StrCat(masks.Where(i), ": a mask without a picture in ", pictures.Where()));
  }
  RETURN_IF_ERROR(pictureless.Tell());
  lists->Sum(pictures);
  lists->Sum(masks);
  lists->NoteLeftOut(pictures);
  lists->NoteLeftOut(masks);
  lists->NoteTurned(pictures);
  const std::string where = masks.Where();
  auto set = std::make_shared<const MaskedPictures>(std::move(pictures), std::move(masks),
                                                    std::move(pairs), numbers, upright);
  if (reads_masks) NoteIgnoredForeground(*set, where, numbers, lists);
  return lists->AddSet(std::move(set));
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> MaskFolderDataSource(
    const JobSpec& spec, const Network& network, std::span<const std::string> reads,
    const DataRoots& roots, SourceLook look) {
  const auto data = spec.data.As<MaskFolderData>();
  const MaskNumbers numbers = NumbersOf(network);
  PictureLists lists(data.on_bad_record, data.pictures, look);
  const bool reads_masks = std::find(reads.begin(), reads.end(), kPictureMasks) != reads.end();
  const bool upright = data.pictures.exif_orientation;
  const FolderNames train_names = {"data.mask_folder.train", "data.mask_folder.masks", data.train,
                                   data.masks};
  std::shared_ptr<const PictureSet> train, test;
  ASSIGN_OR_RETURN(train, AddFolders(roots, train_names, numbers, reads_masks, upright, &lists));
  if (!data.test.empty()) {
    const FolderNames test_names = {"data.mask_folder.test", "data.mask_folder.test_masks",
                                    data.test, data.test_masks};
    ASSIGN_OR_RETURN(test, AddFolders(roots, test_names, numbers, reads_masks, upright, &lists));
  }
  PictureSourceParts parts = lists.Parts(SplitPictures(std::move(train), std::move(test)));
  parts.mask_border =
      static_cast<uint8_t>(numbers.ignored >= 0 && numbers.ignored < 256 ? numbers.ignored : 0);
  return MakePictureSource(spec, network, data.pictures, reads, std::move(parts));
}

}  // namespace stagecoach
