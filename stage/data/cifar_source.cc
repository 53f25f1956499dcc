// The reader of data.cifar (plan/data/cifar.h). All records are kept in memory, of stages that read labels alone only
// these.
#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/hash.h"
#include "base/progress.h"
#include "base/status.h"
#include "base/utf8.h"
#include "plan/data/cifar.h"
#include "stage/data/classes_text.h"
#include "stage/data/data_file.h"
#include "stage/data/open_source.h"
#include "stage/data/picture_source.h"
#include "stage/pictures/decode.h"

namespace stagecoach {
namespace {

constexpr char kField[] = "data.cifar.folder";
constexpr char kTestFile[] = "test_batch.bin", kNamesFile[] = "batches.meta.txt";
constexpr int64_t kMostNamesBytes = 16 << 10;
constexpr int64_t kSide = 32, kPlane = kSide * kSide, kPixelBytes = 3 * kPlane;
constexpr int64_t kRecord = 1 + kPixelBytes;

struct CifarRecords {
  std::vector<uint8_t> labels;
  std::vector<uint8_t> pixels;  // kPixelBytes of each, or none
};

class CifarPictures final : public PictureSet {
 public:
  explicit CifarPictures(CifarRecords records) : records_(std::move(records)) {}
  int64_t count() const override { return static_cast<int64_t>(records_.labels.size()); }
  int32_t label(int64_t i) const override { return records_.labels[static_cast<size_t>(i)]; }
  absl::StatusOr<Picture> Read(int64_t i, int64_t channels) const override {
    Picture picture(kSide, kSide, 3);
    const uint8_t* const planes = records_.pixels.data() + i * kPixelBytes;
    for (int64_t at = 0; at < kPlane; ++at) {
      for (int64_t c = 0; c < 3; ++c) {
        picture.bytes[static_cast<size_t>(3 * at + c)] = planes[c * kPlane + at];
      }
    }
    return WithChannels(std::move(picture), channels);
  }

 private:
  const CifarRecords records_;
};

absl::StatusOr<std::vector<std::string>> TrainFiles(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (absl::StartsWith(name, "data_batch_") && absl::EndsWith(name, ".bin")) {
      names.push_back(name);
    }
  }
  const std::string where = absl::StrCat(kField, " = \"", folder, "\"");
  if (error) {
    return absl::NotFoundError(absl::StrCat(where, ": ", error.message(),
                                            "; give a folder that every stage's machine can read"));
  }
  if (names.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, ": has no data_batch_*.bin; give the folder of CIFAR-10's binary version"));
  }
  std::sort(names.begin(), names.end());
  return names;
}

// As the archive tells them, a line each; none where that file cannot be read, or is another one.
std::vector<std::string> CifarClassNames(const std::string& folder) {
  const auto file = OpenedFile::Open(kField, (std::filesystem::path(folder) / kNamesFile).string());
  if (!file.ok() || (*file)->size() > kMostNamesBytes) return {};
  std::vector<uint8_t> bytes(static_cast<size_t>((*file)->size()));
  if (!(*file)->ReadAt(0, bytes).ok()) return {};
  const std::string text(bytes.begin(), bytes.end());
  std::vector<std::string> names;
  for (const absl::string_view name : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    names.push_back(ShownName(std::string(name)));
  }
  return names;
}

// Reads the files of a job, one after the other, and sums up what identifies them.
class CifarReader {
 public:
  CifarReader(const JobSpec& spec, const Network& network, std::span<const std::string> reads)
      : spec_(spec), folder_(spec.data.As<CifarData>().folder), keeps_(ReadsImages(reads)) {
    const WireId labels = network.InputNamed(kPictureLabels);
    if (labels.valid()) classes_ = network.input(labels).classes;
  }

  absl::Status Read(const std::string& name, CifarRecords* records) {
    ASSIGN_OR_RETURN(const std::unique_ptr<OpenedFile> file,
                     OpenedFile::Open(kField, (std::filesystem::path(folder_) / name).string()));
    if (const int64_t rest = file->size() % kRecord; rest != 0 || file->size() == 0) {
      return absl::DataLossError(
          absl::StrCat(file->Where(), ": ", file->size(), " bytes: the record at offset ",
                       file->size() - rest, " has ", rest, " of ", kRecord,
                       " bytes; give the whole file of CIFAR-10's binary version"));
    }
    std::array<std::byte, 8> size;
    for (size_t i = 0; i < size.size(); ++i) size[i] = std::byte(file->size() >> (8 * i) & 0xff);
    digest_.Update(size);
    std::vector<uint8_t> piece(static_cast<size_t>(kRecord) *
                               (kProgressPieceBytes / static_cast<size_t>(kRecord)));
    for (int64_t offset = 0; offset < file->size();) {
      ASSIGN_OR_RETURN(const size_t count, file->Read(piece));
      digest_.Update(std::as_bytes(std::span(piece).first(count)));
      RETURN_IF_ERROR(Add(file->Where(), offset, std::span(piece).first(count), records));
      offset += static_cast<int64_t>(count);
    }
    bytes_ += file->size();
    return absl::OkStatus();
  }

  DatasetManifest Manifest() { return {.bytes = bytes_, .sha256 = digest_.Hex()}; }

 private:
  absl::Status Add(const std::string& where, int64_t offset, std::span<const uint8_t> piece,
                   CifarRecords* records) const {
    for (; !piece.empty(); piece = piece.subspan(kRecord), offset += kRecord) {
      const uint8_t label = piece.front();
      if (classes_ > 0 && int64_t{label} >= classes_) {
        return absl::InvalidArgumentError(absl::StrCat(
            where, ": label ", int{label}, " of the record at offset ", offset, " is not below ",
            ClassesText(spec_, classes_), "; give CIFAR-10's files or a network of more classes"));
      }
      records->labels.push_back(label);
      if (keeps_) {
        records->pixels.insert(records->pixels.end(), piece.begin() + 1, piece.begin() + kRecord);
      }
    }
    return absl::OkStatus();
  }

  const JobSpec& spec_;
  const std::string folder_;
  const bool keeps_;
  int64_t classes_ = 0;
  Sha256 digest_;
  int64_t bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> OpenCifarSource(const JobSpec& spec,
                                                             const Network& network,
                                                             std::span<const std::string> reads) {
  const auto data = spec.data.As<CifarData>();
  ASSIGN_OR_RETURN(const std::vector<std::string> names, TrainFiles(data.folder));
  CifarReader reader(spec, network, reads);
  CifarRecords train, test;
  for (const std::string& name : names) RETURN_IF_ERROR(reader.Read(name, &train));
  std::error_code error;
  const bool has_test =
      std::filesystem::exists(std::filesystem::path(data.folder) / kTestFile, error);
  if (has_test) RETURN_IF_ERROR(reader.Read(kTestFile, &test));
  PictureSourceParts parts;
  parts.splits =
      SplitPictures(std::make_shared<CifarPictures>(std::move(train)),
                    has_test ? std::make_shared<CifarPictures>(std::move(test)) : nullptr);
  parts.manifest = reader.Manifest();
  parts.facts.classes = CifarClassNames(data.folder);
  return MakePictureSource(spec, network, data.pictures, reads, std::move(parts));
}

}  // namespace stagecoach
