#include "plan/data/idx_header.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files/file_kind.h"
#include "base/files/gzip.h"

namespace stagecoach {
namespace {

// What is taken of each content.
struct IdxForm {
  const char* name;
  uint8_t type;
  const char* type_name;
  int least_extents, most_extents;
  const char* extents;
  int64_t number_bytes;
};
const IdxForm& FormOf(IdxContent content) {
  static constexpr IdxForm kImages = {
      "images", 0x08, "unsigned bytes", 3, 4, "have 3 or 4 (how many, height, width, channels)", 1};
  static constexpr IdxForm kLabels = {"labels", 0x08, "unsigned bytes", 1, 1, "have 1 (how many)",
                                      1};
  static constexpr IdxForm kWeights = {"weights", 0x0d, "float32", 1, 1, "have 1 (how many)", 4};
  switch (content) {
    case IdxContent::kImages:
      return kImages;
    case IdxContent::kLabels:
      return kLabels;
    case IdxContent::kWeights:
      break;
  }
  return kWeights;
}

absl::Status Refused(const std::string& where, const std::string& what, const std::string& remedy) {
  return absl::InvalidArgumentError(absl::StrCat(where, ": ", what, "; ", remedy));
}

uint8_t ByteAt(std::string_view bytes, size_t at) { return static_cast<uint8_t>(bytes[at]); }

std::string HexText(std::string_view bytes) {
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(bytes.size(), 4); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : " ", absl::Hex(ByteAt(bytes, i), absl::kZeroPad2));
  }
  return text;
}

absl::Status CheckMagic(const std::string& where, IdxContent content, std::string_view head) {
  const IdxForm& form = FormOf(content);
  const std::string give = absl::StrCat("give an IDX file of ", form.name, ", plain or gzip");
  if (head.size() < 4 || ByteAt(head, 0) != 0 || ByteAt(head, 1) != 0) {
    const std::optional<FileKind> kind = FileKindOf(head);
    if (!kind.has_value()) {
      return Refused(where, absl::StrCat("begins with \"", HexText(head), "\", no IDX file"), give);
    }
    const std::string is = absl::StrCat(kind->name, ", not an IDX file");
    if (IsPacked(*kind)) return Refused(where, is, "unpack it first, or take gzip");
    return Refused(where, is, kind->remedy.empty() ? give : std::string(kind->remedy));
  }
  if (ByteAt(head, 2) != form.type) {
    return Refused(
        where,
        absl::StrCat("holds numbers of type ", absl::Hex(ByteAt(head, 2), absl::kZeroPad2),
                     ", not ", form.type_name, " (", absl::Hex(form.type, absl::kZeroPad2), ")"),
        give);
  }
  const int extents = ByteAt(head, 3);
  if (extents >= form.least_extents && extents <= form.most_extents) return absl::OkStatus();
  return Refused(where,
                 absl::StrCat("has ", extents, extents == 1 ? " extent" : " extents", ", and ",
                              form.name, " ", form.extents),
                 give);
}

}  // namespace

int64_t IdxHeader::item_bytes() const {
  int64_t bytes = number_bytes;
  for (size_t i = 1; i < extents.size(); ++i) bytes *= extents[i];
  return bytes;
}

Shape IdxHeader::image() const {
  return {extents[1], extents[2], extents.size() == 4 ? extents[3] : 1};
}

absl::StatusOr<IdxHeader> ParseIdxHeader(const std::string& where, IdxContent content,
                                         std::string_view head) {
  RETURN_IF_ERROR(CheckMagic(where, content, head));
  IdxHeader header{.extents = {}, .number_bytes = FormOf(content).number_bytes};
  header.extents.resize(ByteAt(head, 3));
  if (static_cast<int64_t>(head.size()) < header.header_bytes()) {
    return Refused(where,
                   absl::StrCat(head.size(), " bytes, its header has ", header.header_bytes()),
                   "give the whole file");
  }
  for (size_t i = 0; i < header.extents.size(); ++i) {
    int64_t& extent = header.extents[i];
    for (size_t byte = 4 + 4 * i; byte < 8 + 4 * i; ++byte)
      extent = extent << 8 | ByteAt(head, byte);
    const int64_t most = i == 0 ? kMaxIdxCount : kMaxExtent;
    if (extent >= 1 && extent <= most) continue;
    return Refused(where, absl::StrCat("extent ", i, " of its header is ", extent),
                   absl::StrCat("must be 1 to ", most));
  }
  if (header.item_bytes() > kMaxIdxImage) {
    return Refused(where, absl::StrCat("images of ", header.item_bytes(), " numbers"),
                   absl::StrCat("must be at most ", kMaxIdxImage));
  }
  return header;
}

absl::StatusOr<std::string> UnpackedIdxHead(const std::string& where, std::string_view head) {
  if (!LooksLikeGzip(head)) return std::string(head);
  GunzipMembers gunzip;
  std::array<uint8_t, kFileKindBytes> bytes;
  const std::span<uint8_t> room = bytes;
  const std::span packed(reinterpret_cast<const uint8_t*>(head.data()), head.size());
  const auto done = gunzip.Unpack(packed, room.first(kLongestIdxHeader));
  if (!done.ok())
    return Refused(where, std::string(done.status().message()), "give the whole file");
  if (done->written == 0 && !gunzip.ended()) {
    return Refused(where,
                   absl::StrCat("its first ", head.size(), " bytes of gzip unpack to nothing"),
                   "give the whole file, packed without a comment or an extra field (gzip)");
  }
  // What is behind the header tells a tar archive; damage there is found when it is read.
  const auto more = gunzip.Unpack(packed.subspan(done->read), room.subspan(done->written));
  return std::string(reinterpret_cast<const char*>(bytes.data()),
                     done->written + (more.ok() ? more->written : 0));
}

absl::Status CheckIdxSize(const std::string& where, const IdxHeader& header, int64_t bytes,
                          const char* unit) {
  if (bytes == header.file_bytes()) return absl::OkStatus();
  return Refused(where,
                 absl::StrCat(bytes, " ", unit, ", its header [",
                              absl::StrJoin(header.extents, ", "), "] says ", header.file_bytes()),
                 "give the whole file");
}

absl::Status CheckPackedIdxSize(const std::string& where, const IdxHeader& header, int64_t packed) {
  if (header.file_bytes() / kMostGzipRatio <= packed) return absl::OkStatus();
  return Refused(where,
                 absl::StrCat(packed, " bytes of gzip hold at most ", packed * kMostGzipRatio,
                              ", its header [", absl::StrJoin(header.extents, ", "), "] says ",
                              header.file_bytes()),
                 "give the whole file");
}

absl::Status CheckIdxImages(const std::string& where, const IdxHeader& header, const JobSpec& spec,
                            const Network& network) {
  const WireId images = network.InputNamed("images");
  if (!images.valid() || network.wire(images).type.shape == header.image()) return absl::OkStatus();
  const std::string model = absl::StrCat("model.", spec.network.kind);
  const bool field = spec.network.attributes.Find("image") != nullptr;
  const std::string is = header.image().ToString();
  return Refused(where, absl::StrCat("images ", is, " (height, width, channels)"),
                 absl::StrCat(model, field ? ".image = " : " reads images ",
                              network.wire(images).type.shape.ToString(), ": ",
                              field ? absl::StrCat("set it to ", is) : absl::StrCat("make it ", is),
                              " or give other images"));
}

}  // namespace stagecoach
