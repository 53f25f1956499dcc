// Files of data sets: pictures, masks, tar, IDX, gzip, tokens, JSON lines. The first byte says
// which; what a header claims may not cost memory that the file does not have.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/gzip.h"
#include "stage/data/formats/idx_file.h"
#include "stage/data/formats/json_document.h"
#include "stage/data/formats/tar_members.h"
#include "stage/data/formats/token_file.h"
#include "stage/files/any_file_testing.h"
#include "stage/pictures/decode.h"
#include "stage/pictures/orientation.h"
#include "tests/fuzz/fuzz_target.h"

namespace stagecoach {
namespace {

constexpr int64_t kMostPixels = 1 << 14;

// One file of this process, with these bytes by turns. Jobs' files are opened by name, so it has
// one.
class ScratchFile {
 public:
  ScratchFile() {
    const char* const folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    path_ = absl::StrCat(folder, "/stagecoach-fuzz-XXXXXX");
    descriptor_ = mkstemp(path_.data());
    CHECK(descriptor_ >= 0) << path_ << ", errno " << errno;
  }
  ~ScratchFile() {
    close(descriptor_);
    unlink(path_.c_str());
  }
  const std::string& Holding(const std::string& bytes) {
    CHECK_EQ(ftruncate(descriptor_, 0), 0);
    CHECK_EQ(pwrite(descriptor_, bytes.data(), bytes.size(), 0),
             static_cast<ssize_t>(bytes.size()));
    return path_;
  }

 private:
  std::string path_;
  int descriptor_ = -1;
};

const std::string& FileOf(const std::string& bytes) {
  static ScratchFile file;
  return file.Holding(bytes);
}

std::span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

void CheckPicture(const absl::StatusOr<Picture>& picture, int64_t channels) {
  if (!picture.ok()) return CheckShown(picture.status());
  CHECK(picture->height > 0 && picture->width > 0) << "some pixels";
  CHECK_LE(picture->height * picture->width, kMostPixels);
  CHECK_EQ(picture->channels, channels);
  CHECK_EQ(picture->bytes.size(), picture->row_bytes() * static_cast<size_t>(picture->height));
}

void ReadTar(const std::string& bytes) {
  const std::unique_ptr<OpenedFile> file =
      OpenedFile::Open(AnyFile(), "data", FileOf(bytes)).value();
  TarMembers members(file.get());
  int64_t last = -1;
  while (true) {
    const auto member = members.Next();
    if (!member.ok() || !member->has_value()) return;
    const auto size = static_cast<int64_t>(bytes.size());
    CHECK_GT((*member)->offset, last) << "it goes forward";
    CHECK((*member)->bytes >= 0 && (*member)->offset <= size - (*member)->bytes)
        << (*member)->offset << " + " << (*member)->bytes << " of " << size;
    last = (*member)->offset;
  }
}

void ReadIdx(const std::string& bytes, IdxContent content) {
  Sha256 digest;
  const absl::StatusOr<IdxFile> file =
      ReadIdxFile(AnyFile(), "data.idx.images", FileOf(bytes), content, /*keep=*/true, &digest);
  if (!file.ok()) return;
  const IdxHeader& header = file->header;
  CHECK(header.count() >= 0 && header.item_bytes() > 0) << "of something";
  std::vector<uint8_t> item(static_cast<size_t>(header.item_bytes()));
  for (int64_t i = 0; i < std::min<int64_t>(header.count(), 4); ++i) {
    CHECK_OK(file->ReadItem(i, item));
  }
}

void ReadTokens(const std::string& bytes) {
  const absl::StatusOr<OpenedTokens> file = OpenTokenFile(
      AnyFile(),
      {.field = "data", .path = FileOf(bytes), .vocabulary = 1000, .vocabulary_field = "ids"});
  if (!file.ok()) return CheckShown(file.status());
  std::vector<int32_t> ids(static_cast<size_t>(std::min<int64_t>(file->tokens->tokens(), 64)));
  CHECK_OK(file->tokens->Read(file->tokens->tokens() - std::ssize(ids), ids));
  for (const int32_t id : ids) CHECK(id >= 0 && id < 1000) << id;
}

void Unpack(const std::string& bytes) {
  Gunzip gunzip;
  std::span<const uint8_t> from = BytesOf(bytes);
  std::vector<uint8_t> into(257);
  for (int64_t written = 0; written < (1 << 16);) {
    const absl::StatusOr<Gunzip::Done> done = gunzip.Unpack(from, into);
    if (!done.ok()) return;
    CHECK_LE(done->read, from.size());
    CHECK_LE(done->written, into.size());
    from = from.subspan(done->read);
    written += static_cast<int64_t>(done->written);
    if (done->ended || (from.empty() && done->written == 0)) return;
  }
}

}  // namespace

void FuzzDataFile(FuzzInput input) {
  const uint8_t which = input.Byte();
  const std::string bytes = input.Rest();
  switch (which % 11) {
    case 0:
      return CheckPicture(DecodePicture(BytesOf(bytes), 3, kMostPixels), 3);
    case 1:
      return CheckPicture(DecodePicture(BytesOf(bytes), 1, kMostPixels), 1);
    case 2:
      (void)PngSize(BytesOf(bytes));
      return CheckPicture(DecodeMask(BytesOf(bytes), kMostPixels), 1);
    case 3:
      return ReadTar(bytes);
    case 4:
      return ReadIdx(bytes, IdxContent::kImages);
    case 5:
      return ReadIdx(bytes, IdxContent::kLabels);
    case 6:
      return ReadIdx(bytes, IdxContent::kWeights);
    case 7:
      return Unpack(bytes);
    case 8:
      (void)OrientationOf(BytesOf(bytes));
      return CheckPicture(DecodeUpright(BytesOf(bytes), 3, kMostPixels), 3);
    case 9:
      return ReadTokens(bytes);
    case 10:
      return CheckShown(JsonDocument(bytes, "text").status());
  }
}

}  // namespace stagecoach

FUZZ_TARGET(data_file, FuzzDataFile)
