#include "checkpoint/safetensors/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/files/file_kind.h"
#include "base/files/hash.h"
#include "checkpoint/safetensors/safetensors_header.h"

namespace stagecoach {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensor bytes are written as they lie in memory");

// Hashed and written while still in the cache.
constexpr size_t kPieceBytes = size_t{1} << 20;

// Appends to a file and to the digest of the whole file.
class HashingWriter {
 public:
  explicit HashingWriter(WritableFile* file) : file_(file) {}

  absl::Status Append(std::span<const std::byte> bytes, Sha256* also = nullptr) {
    while (!bytes.empty()) {
      const auto piece = bytes.first(std::min(bytes.size(), kPieceBytes));
      digest_.Update(piece);
      if (also != nullptr) also->Update(piece);
      RETURN_IF_ERROR(file_->Append(piece));
      bytes_ += static_cast<int64_t>(piece.size());
      bytes = bytes.subspan(piece.size());
    }
    return absl::OkStatus();
  }

  int64_t bytes() const { return bytes_; }
  std::string Hex() { return digest_.Hex(); }

 private:
  WritableFile* const file_;
  Sha256 digest_;
  int64_t bytes_ = 0;
};

std::array<std::byte, 8> LittleEndian64(uint64_t value) {
  return std::bit_cast<std::array<std::byte, 8>>(value);
}

}  // namespace

absl::StatusOr<std::vector<TensorEntry>> LayOutTensors(std::span<const TensorSource> tensors) {
  std::vector<TensorEntry> entries;
  int64_t end = 0;
  for (const TensorSource& tensor : tensors) {
    absl::StatusOr<int64_t> bytes = TensorBytes(tensor.dtype, tensor.shape);
    if (!bytes.ok()) return Annotate(bytes.status(), absl::StrCat("tensor ", tensor.name));
    const int64_t begin = end;
    if (__builtin_add_overflow(begin, *bytes, &end)) {
      return absl::InvalidArgumentError("the bytes of all tensors overflow");
    }
    entries.push_back({tensor.name, tensor.dtype, tensor.shape, begin, end});
  }
  return entries;
}

absl::StatusOr<WrittenFile> WriteSafetensors(FileSystem& file_system, const std::string& path,
                                             std::span<const TensorSource> tensors,
                                             const Metadata& metadata) {
  WrittenFile result;
  ASSIGN_OR_RETURN(result.tensors, LayOutTensors(tensors));
  absl::StatusOr<std::string> header = FormatSafetensorsHeader(result.tensors, metadata);
  if (!header.ok()) return Annotate(header.status(), path);

  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, file_system.Create(path));
  HashingWriter writer(file.get());
  RETURN_IF_ERROR(writer.Append(LittleEndian64(header->size())));
  RETURN_IF_ERROR(writer.Append(std::as_bytes(std::span(*header))));
  for (size_t i = 0; i < tensors.size(); ++i) {
    absl::StatusOr<std::span<const std::byte>> bytes = tensors[i].bytes();
    if (!bytes.ok()) return Annotate(bytes.status(), absl::StrCat("tensor ", tensors[i].name));
    CHECK_EQ(static_cast<int64_t>(bytes->size()), result.tensors[i].bytes())
        << "bytes given for tensor " << tensors[i].name;
    Sha256 digest;
    RETURN_IF_ERROR(writer.Append(*bytes, &digest));
    result.tensor_sha256.push_back(digest.Hex());
  }
  RETURN_IF_ERROR(file->Sync());
  RETURN_IF_ERROR(file->Close());
  result.bytes = writer.bytes();
  result.sha256 = writer.Hex();
  return result;
}

absl::StatusOr<SafetensorsReader> SafetensorsReader::Open(ReadableFiles& file_system,
                                                          const std::string& path) {
  SafetensorsReader reader;
  reader.path_ = path;
  ASSIGN_OR_RETURN(reader.file_, file_system.Open(path));
  const absl::Status read = reader.ReadHeader();
  if (absl::IsDataLoss(read)) return Annotate(reader.NamingTheKind(read), path);
  RETURN_IF_ERROR(read);
  return reader;
}

absl::Status SafetensorsReader::ReadHeader() {
  const int64_t size = file_->size();
  if (size < kSafetensorsLengthBytes) {
    return absl::DataLossError(absl::StrCat(size, " bytes are too few for a safetensors file"));
  }
  std::array<std::byte, 8> length_bytes;
  RETURN_IF_ERROR(file_->Read(0, length_bytes));
  const uint64_t length = std::bit_cast<uint64_t>(length_bytes);
  if (length > static_cast<uint64_t>(size - kSafetensorsLengthBytes)) {
    return absl::DataLossError(
        absl::StrCat("header length ", length, " is over the file's ", size, " bytes"));
  }
  if (length > static_cast<uint64_t>(kMaxSafetensorsHeaderBytes)) {
    return absl::DataLossError(absl::StrCat("header of ", length, " bytes, over 16 MiB"));
  }
  std::string header(length, '\0');
  RETURN_IF_ERROR(file_->Read(kSafetensorsLengthBytes, std::as_writable_bytes(std::span(header))));
  buffer_offset_ = kSafetensorsLengthBytes + static_cast<int64_t>(length);
  RETURN_IF_ERROR(ParseSafetensorsHeader(header, size - buffer_offset_, &tensors_, &metadata_));
  by_name_.resize(tensors_.size());
  std::iota(by_name_.begin(), by_name_.end(), size_t{0});
  std::sort(by_name_.begin(), by_name_.end(),
            [this](size_t a, size_t b) { return tensors_[a].name < tensors_[b].name; });
  return absl::OkStatus();
}

absl::Status SafetensorsReader::NamingTheKind(const absl::Status& error) {
  std::string head(std::min(static_cast<size_t>(file_->size()), kFileKindBytes), '\0');
  RETURN_IF_ERROR(file_->Read(0, std::as_writable_bytes(std::span(head))));
  // What is cut off or damaged begins as it should.
  const std::optional<FileKind> kind = FileKindOf(head);
  if (!kind.has_value() || kind->name == kSafetensorsKind) return error;
  return absl::DataLossError(OtherKindText(head, kSafetensorsKind));
}

const TensorEntry* SafetensorsReader::Find(const std::string& name) const {
  const auto at =
      std::lower_bound(by_name_.begin(), by_name_.end(), name,
                       [this](size_t i, const std::string& n) { return tensors_[i].name < n; });
  if (at == by_name_.end() || tensors_[*at].name != name) return nullptr;
  return &tensors_[*at];
}

int64_t SafetensorsReader::file_bytes() const { return file_->size(); }

absl::Status SafetensorsReader::Read(const TensorEntry& tensor, std::span<std::byte> target) {
  CHECK_EQ(static_cast<int64_t>(target.size()), tensor.bytes()) << "room for " << tensor.name;
  return ReadPart(tensor, 0, target);
}

absl::Status SafetensorsReader::ReadPart(const TensorEntry& tensor, int64_t offset,
                                         std::span<std::byte> target) {
  CHECK(0 <= offset && offset <= tensor.bytes() - static_cast<int64_t>(target.size()))
      << target.size() << " bytes of " << tensor.name << " from " << offset;
  return Annotate(file_->Read(buffer_offset_ + tensor.begin + offset, target),
                  absl::StrCat("tensor ", tensor.name));
}

}  // namespace stagecoach
