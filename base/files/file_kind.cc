#include "base/files/file_kind.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace stagecoach {
namespace {

using std::string_view_literals::operator""sv;

constexpr absl::string_view kUnpack = "unpack it first";
constexpr absl::string_view kConvert = "convert it to UTF-8 first (iconv -t UTF-8)";
constexpr absl::string_view kTakeAway = "delete it (dot_clean, or tar with COPYFILE_DISABLE=1)";
constexpr absl::string_view kDownload =
    "a download was answered with a page: fetch the file itself (on Hugging Face /resolve/ in "
    "place of /blob/)";

constexpr FileKind::Form kMarkup = FileKind::Form::kMarkup, kText = FileKind::Form::kText;

struct Magic {
  size_t offset;
  std::string_view bytes;
  FileKind kind;
};

// Longer ones stand before their own beginnings.
constexpr Magic kMagics[] = {
    {0, "\x1f\x8b"sv, {"gzip data", kUnpack}},
    {0, "\x1f\x9d"sv, {"compress data", kUnpack}},
    {0, "\x28\xb5\x2f\xfd"sv, {"zstd data", kUnpack}},
    {0, "\xfd\x37zXZ\0"sv, {"xz data", kUnpack}},
    {0, "\x04\x22\x4d\x18"sv, {"lz4 data", kUnpack}},
    {0, "7z\xbc\xaf\x27\x1c"sv, {"a 7z archive", kUnpack}},
    {0, "Rar!\x1a\x07"sv, {"a rar archive", kUnpack}},
    {257, "ustar"sv, {"a tar archive", kUnpack}},
    {0, "\x7f\x45LF"sv, {"a program (ELF)", ""}},
    {0, "%PDF-"sv, {"a PDF document", ""}},
    {0, "%!PS"sv, {"a PostScript document", "", kMarkup}},
    {0, "\x89PNG\r\n"sv, {"a PNG picture", ""}},
    {0, "\xff\xd8\xff"sv, {"a JPEG picture", ""}},
    {0, "GIF87a"sv, {"a GIF picture", ""}},
    {0, "GIF89a"sv, {"a GIF picture", ""}},
    {0, "II*\0"sv, {"TIFF", ""}},
    {0, "MM\0*"sv, {"TIFF", ""}},
    {0, "II+\0"sv, {"BigTIFF", ""}},
    {0, "MM\0+"sv, {"BigTIFF", ""}},
    {0, "\0\0\0\x0cJXL \r\n\x87\n"sv, {"JPEG XL", ""}},
    {0, "\xff\x0a"sv, {"JPEG XL", ""}},
    {0, "\0\0\0\x0cjP  \r\n\x87\n"sv, {"JPEG 2000", ""}},
    {0, "\xff\x4f\xff\x51"sv, {"JPEG 2000", ""}},
    {0, "8BPS\0"sv, {"a Photoshop document", ""}},
    {0, "v/1\x01"sv, {"OpenEXR", ""}},
    {128, "DICM"sv, {"DICOM", ""}},
    {0, "\x89HDF\r\n\x1a\n"sv, {"HDF5 (as Keras writes .h5)", ""}},
    {0, "\x93NUMPY"sv, {"a NumPy array (.npy)", ""}},
    {0, "PAR1\x15"sv, {"Parquet", ""}},
    {0, "ARROW1\0\0"sv, {"Arrow", ""}},
    {0, "GGUF\2\0\0\0"sv, {"GGUF", ""}},
    {0, "GGUF\3\0\0\0"sv, {"GGUF", ""}},
    {0, "MATLAB 5.0 MAT-file"sv, {"a MATLAB file", ""}},
    {0, "SQLite format 3\0"sv, {"an SQLite database", ""}},
    {0, "OggS\0"sv, {"Ogg", ""}},
    {0, "\0\5\x16\7"sv, {"macOS's file beside a file (AppleDouble)", kTakeAway}},
    {0, "/annex/objects/"sv, {"a git-annex pointer", "fetch the file itself (git annex get)"}},
    {0,
     "version https://git-lfs.github.com/"sv,
     {"a Git LFS pointer", "fetch the file itself (git lfs pull)"}},
    {0, "\xff\xfe\0\0"sv, {"UTF-32", kConvert}},
    {0, "\0\0\xfe\xff"sv, {"UTF-32", kConvert}},
    {0, "\xff\xfe"sv, {"UTF-16", kConvert}},
    {0, "\xfe\xff"sv, {"UTF-16", kConvert}},
};

uint8_t ByteAt(std::string_view head, size_t at) { return static_cast<uint8_t>(head[at]); }

bool HasAt(std::string_view head, size_t offset, std::string_view bytes) {
  return head.size() >= offset && head.substr(offset).starts_with(bytes);
}

uint64_t LittleEndian(std::string_view bytes) {
  uint64_t number = 0;
  for (size_t i = bytes.size(); i > 0; --i) number = number << 8 | ByteAt(bytes, i - 1);
  return number;
}

// "BZh" alone may begin a text.
bool IsBzip2(std::string_view head) {
  return head.size() >= 10 && head.starts_with("BZh") && head[3] >= '1' && head[3] <= '9' &&
         head.substr(4, 6) == "1AY&SY";
}

// "BM" alone may begin a text: the size of the header behind it tells.
bool IsBmp(std::string_view head) {
  if (head.size() < 18 || !head.starts_with("BM")) return false;
  const uint64_t header = LittleEndian(head.substr(14, 4));
  return header == 12 || (header >= 40 && header <= 124);
}

// Eight bytes say how long the JSON behind them is.
bool IsSafetensors(std::string_view head) {
  constexpr uint64_t kMostHeader = 100'000'000;  // as its library takes
  return head.size() > 8 && head[8] == '{' && LittleEndian(head.substr(0, 8)) <= kMostHeader;
}

// Protocol 2 to 5, and one of the operations that come first.
bool IsPickle(std::string_view head) {
  return head.size() >= 3 && ByteAt(head, 0) == 0x80 && ByteAt(head, 1) >= 2 &&
         ByteAt(head, 1) <= 5 && "\x8a\x95}](cX\x8c"sv.find(head[2]) != std::string_view::npos;
}

// By its first member: PyTorch's and NumPy's files are zip archives.
std::optional<FileKind> ZipKind(std::string_view head) {
  if (head.starts_with("PK\x05\x06")) return FileKind{"an empty zip archive", ""};
  if (!head.starts_with("PK\x03\x04")) return std::nullopt;
  if (head.size() > 30) {
    const std::string_view name = head.substr(30, LittleEndian(head.substr(26, 2)));
    if (name.ends_with("data.pkl") || name.ends_with("/byteorder") || name.ends_with("/version") ||
        name.ends_with("/.format_version")) {
      return FileKind{"PyTorch's zip of pickles (as torch.save writes .pt and .pth)", ""};
    }
    if (name.ends_with(".npy")) return FileKind{"NumPy arrays (.npz)", ""};
  }
  return FileKind{"a zip archive", kUnpack};
}

std::optional<FileKind> RiffKind(std::string_view head) {
  if (!head.starts_with("RIFF") || head.size() < 12) return std::nullopt;
  const std::string_view form = head.substr(8, 4);
  if (form == "WEBP") return FileKind{"WebP", ""};
  if (form == "WAVE") return FileKind{"a sound (WAV)", ""};
  if (form == "AVI ") return FileKind{"a film (AVI)", ""};
  return std::nullopt;
}

// ISO's base media format, by its major brand.
std::optional<FileKind> MediaKind(std::string_view head) {
  if (!HasAt(head, 4, "ftyp") || head.size() < 12) return std::nullopt;
  const std::string_view brand = head.substr(8, 4);
  if (brand == "avif" || brand == "avis") return FileKind{"AVIF", ""};
  constexpr std::array kHeic = {"heic"sv, "heix"sv, "heim"sv, "heis"sv,
                                "hevc"sv, "hevx"sv, "mif1"sv, "msf1"sv};
  if (std::find(kHeic.begin(), kHeic.end(), brand) != kHeic.end()) return FileKind{"HEIC", ""};
  return FileKind{"a film (MP4 or QuickTime)", ""};
}

bool IsPlainText(absl::string_view head) {
  return std::none_of(head.begin(), head.end(), [](char c) {
    return static_cast<uint8_t>(c) >= 0x7f || (c < 0x20 && !absl::ascii_isspace(c));
  });
}

std::optional<FileKind> TextKind(std::string_view head) {
  absl::string_view text(head.data(), head.size());
  absl::ConsumePrefix(&text, "\xef\xbb\xbf");  // UTF-8's mark
  text = absl::StripLeadingAsciiWhitespace(text);
  for (const char* tag : {"<!doctype html", "<html", "<head"}) {
    if (absl::StartsWithIgnoreCase(text, tag)) return FileKind{"an HTML page", kDownload, kMarkup};
  }
  if (absl::StartsWith(text, "<?xml")) return FileKind{"an XML document", "", kMarkup};
  const bool object = absl::StartsWith(text, "{");
  if (object && absl::StrContains(text, "\"weight_map\"")) {
    return FileKind{"the index of sharded weights (index.json)", "", kMarkup};
  }
  if (object && IsPlainText(text)) return FileKind{"JSON", "", kText};
  if (IsPlainText(text)) return FileKind{"text", "", kText};
  return std::nullopt;
}

}  // namespace

std::optional<FileKind> FileKindOf(std::string_view head) {
  head = head.substr(0, kFileKindBytes);
  if (head.empty()) return FileKind{"an empty file", ""};
  for (const Magic& magic : kMagics) {
    if (HasAt(head, magic.offset, magic.bytes)) return magic.kind;
  }
  if (IsBzip2(head)) return FileKind{"bzip2 data", kUnpack};
  if (IsBmp(head)) return FileKind{"BMP", ""};
  if (IsSafetensors(head)) return FileKind{kSafetensorsKind, ""};
  if (IsPickle(head)) return FileKind{"a pickle of Python's", ""};
  for (const auto kind_of : {ZipKind, RiffKind, MediaKind}) {
    if (const std::optional<FileKind> kind = kind_of(head); kind.has_value()) return kind;
  }
  if (std::all_of(head.begin(), head.end(), [](char c) { return c == 0; })) {
    return FileKind{"a file that begins with zeros", ""};
  }
  return TextKind(head);
}

std::string OtherKindText(std::string_view head, absl::string_view wanted) {
  const std::optional<FileKind> kind = FileKindOf(head);
  if (!kind.has_value()) return "";
  return absl::StrCat(kind->name, ", not ", wanted, kind->remedy.empty() ? "" : "; ", kind->remedy);
}

bool IsPacked(const FileKind& kind) { return kind.remedy == kUnpack; }

}  // namespace stagecoach
