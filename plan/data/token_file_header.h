// TokenFileHeader: the header of a file of tokens that another program made (docs/formats.md,
// "Files of tokens"). All numbers are little endian.
//   llm.c     256 int32: magic, version, number of tokens; then the tokens, uint16 or uint32
//   Megatron  an index: "MMIDIDX\0\0", version, type, counts of sequences and documents. Its tokens
//             are in a file beside it.
// Threads: pure functions.
// Errors:  INVALID_ARGUMENT that begin with `where` (`data.token_file.files[0] = "a"`), with the
//          value and the remedy.
#ifndef STAGECOACH_PLAN_DATA_TOKEN_FILE_HEADER_H_
#define STAGECOACH_PLAN_DATA_TOKEN_FILE_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace stagecoach {

enum class TokenType : uint8_t { kUint8, kUint16, kInt32, kUint32, kInt64 };
int64_t TokenBytes(TokenType type);

struct TokenFileHeader {
  bool index = false;  // Megatron's; else llm.c's
  TokenType type = TokenType::kUint16;
  int64_t tokens = 0;                    // of llm.c's
  int64_t sequences = 0, documents = 0;  // of an index; documents' boundaries are one more
  // Where the tokens begin in llm.c's file, or in an index the lengths of the sequences. Then
  // follow the sequences' first bytes, int64, and the documents' first sequences, int64.
  int64_t header_bytes = 0;
};

// "a.bin" of "a.idx"; empty if the name does not end so, and is no index's.
std::string TokensBesideIndex(const std::string& path);

inline constexpr size_t kLlmCHeaderBytes = 256 * 4;
inline constexpr size_t kMegatronHeaderBytes = 9 + 8 + 1 + 8 + 8;

// head: the file's first bytes, kLlmCHeaderBytes of them or all there are; bytes: the file's size,
// which has to be what the header says.
absl::StatusOr<TokenFileHeader> ParseTokenFileHeader(const std::string& where,
                                                     std::string_view head, int64_t bytes);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_DATA_TOKEN_FILE_HEADER_H_
