#include "plan/data/token_file_header.h"

#include <bit>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/files/file_kind.h"

namespace stagecoach {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are read as they are stored");

constexpr std::string_view kMegatronMagic{"MMIDIDX\0\0", 9};
constexpr char kGive[] =
    "give llm.c's .bin (its header has magic 20240520 or 20240801), or the .idx of a Megatron pair";

template <typename Number>
Number NumberAt(std::string_view bytes, size_t at) {
  Number number;
  std::memcpy(&number, bytes.data() + at, sizeof(number));
  return number;
}

absl::Status Refused(const std::string& where, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(where, ": ", what));
}

absl::Status OtherSize(const std::string& where, int64_t bytes, const std::string& says,
                       int64_t wanted) {
  return Refused(where, absl::StrCat("has ", bytes, " bytes; its header says ", says,
                                     ", which are ", wanted, " bytes: copy the whole file again"));
}

struct LlmCKind {
  int32_t magic, version;
  TokenType type;
};
constexpr LlmCKind kLlmCKinds[] = {{20240520, 1, TokenType::kUint16},
                                   {20240801, 7, TokenType::kUint32}};
constexpr int32_t kLlmCEvaluation = 20240522;

absl::StatusOr<TokenFileHeader> ParseLlmC(const std::string& where, const LlmCKind& kind,
                                          std::string_view head, int64_t bytes) {
  if (head.size() < kLlmCHeaderBytes) {
    return Refused(where, absl::StrCat("has ", bytes, " bytes; llm.c's header alone has ",
                                       kLlmCHeaderBytes, ": copy the whole file again"));
  }
  const auto version = NumberAt<int32_t>(head, 4), tokens = NumberAt<int32_t>(head, 8);
  if (version != kind.version) {
    return Refused(where, absl::StrCat("is version ", version, " of llm.c's tokens with magic ",
                                       kind.magic, "; must be ", kind.version,
                                       ": write it with llm.c's dev/data programs"));
  }
  if (tokens < 0) {
    return Refused(where,
                   absl::StrCat("its header says ", tokens, " tokens: copy the whole file again"));
  }
  TokenFileHeader header{
      .type = kind.type, .tokens = tokens, .header_bytes = static_cast<int64_t>(kLlmCHeaderBytes)};
  const int64_t wanted = header.header_bytes + header.tokens * TokenBytes(kind.type);
  if (bytes == wanted) return header;
  return OtherSize(where, bytes, absl::StrCat(tokens, " tokens"), wanted);
}

absl::StatusOr<TokenType> MegatronType(const std::string& where, uint8_t code) {
  switch (code) {
    case 1:
      return TokenType::kUint8;
    case 4:
      return TokenType::kInt32;
    case 5:
      return TokenType::kInt64;
    case 8:
      return TokenType::kUint16;
    default:
      return Refused(where, absl::StrCat("its tokens have type ", code,
                                         "; must be 1 (uint8), 4 (int32), 5 (int64) or 8 (uint16): "
                                         "write it with Megatron's preprocess_data.py"));
  }
}

absl::StatusOr<TokenFileHeader> ParseMegatron(const std::string& where, std::string_view head,
                                              int64_t bytes) {
  if (head.size() < kMegatronHeaderBytes) {
    return Refused(where, absl::StrCat("has ", bytes, " bytes; Megatron's header alone has ",
                                       kMegatronHeaderBytes, ": copy the whole file again"));
  }
  const auto version = NumberAt<uint64_t>(head, 9);
  if (version != 1) {
    return Refused(where, absl::StrCat("is version ", version,
                                       " of Megatron's index; must be 1: write it with Megatron's "
                                       "preprocess_data.py"));
  }
  const absl::StatusOr<TokenType> type = MegatronType(where, static_cast<uint8_t>(head[17]));
  if (!type.ok()) return type.status();
  const auto sequences = NumberAt<uint64_t>(head, 18), boundaries = NumberAt<uint64_t>(head, 26);
  // Sizes as far as they can be added without overflow.
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max() / 32;
  if (sequences > kMost || boundaries > kMost || boundaries == 0) {
    return Refused(where, absl::StrCat("its header says ", sequences, " sequences and ", boundaries,
                                       " boundaries of documents: copy the whole file again"));
  }
  const auto header_bytes = static_cast<int64_t>(kMegatronHeaderBytes);
  const TokenFileHeader header{.index = true,
                               .type = *type,
                               .sequences = static_cast<int64_t>(sequences),
                               .documents = static_cast<int64_t>(boundaries) - 1,
                               .header_bytes = header_bytes};
  const int64_t wanted = header_bytes + 12 * header.sequences + 8 * (header.documents + 1);
  if (bytes == wanted) return header;
  return OtherSize(where, bytes,
                   absl::StrCat(sequences, " sequences and ", header.documents, " documents"),
                   wanted);
}

}  // namespace

int64_t TokenBytes(TokenType type) {
  switch (type) {
    case TokenType::kUint8:
      return 1;
    case TokenType::kUint16:
      return 2;
    case TokenType::kInt32:
    case TokenType::kUint32:
      return 4;
    case TokenType::kInt64:
      return 8;
  }
  return 0;
}

std::string TokensBesideIndex(const std::string& path) {
  constexpr std::string_view kIndex = ".idx";
  if (!path.ends_with(kIndex)) return "";
  return path.substr(0, path.size() - kIndex.size()) + ".bin";
}

absl::StatusOr<TokenFileHeader> ParseTokenFileHeader(const std::string& where,
                                                     std::string_view head, int64_t bytes) {
  if (head.starts_with(kMegatronMagic)) return ParseMegatron(where, head, bytes);
  if (head.size() >= sizeof(int32_t)) {
    const auto magic = NumberAt<int32_t>(head, 0);
    for (const LlmCKind& kind : kLlmCKinds) {
      if (magic == kind.magic) return ParseLlmC(where, kind, head, bytes);
    }
    if (magic == kLlmCEvaluation) {
      return Refused(where,
                     absl::StrCat("has llm.c's questions with answers, not tokens; ", kGive));
    }
  }
  const std::string other =
      OtherKindText(head.substr(0, kFileKindBytes), "a file of tokens with a header");
  return Refused(where,
                 other.empty()
                     ? absl::StrCat("does not begin as a file of tokens with a header; ", kGive)
                     : absl::StrCat(other, "; ", kGive));
}

}  // namespace stagecoach
