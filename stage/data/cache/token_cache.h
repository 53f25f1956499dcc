// TokenCache: a file with the ids that a tokenizer made of a text (docs/formats.md, "Cached
// tokens"). It is named by the digests of both, and written whole or not at all.
// A reader takes nothing for granted: a file that is torn, damaged or of something else counts as
// none, and is made again.
// Ownership: borrows the file system; owns its files.  Threads: thread-compatible.
// Errors:    as FileSystem. Open: NOT_FOUND: there is none that is good, with the reason.
#ifndef STAGECOACH_STAGE_DATA_CACHE_TOKEN_CACHE_H_
#define STAGECOACH_STAGE_DATA_CACHE_TOKEN_CACHE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "checkpoint/files/file_system.h"
#include "stage/data/formats/text_tokens.h"

namespace stagecoach {

// Raise it when the same text and tokenizer give other ids.
inline constexpr uint32_t kTokenCacheVersion = 2;

struct TokenCacheKey {
  std::string text, tokenizer;  // SHA-256 in hexadecimal
  std::string FileName() const;
};

// Reads the whole file once, and ticks progress. ids: of the tokenizer; every token is below.
absl::StatusOr<std::unique_ptr<const TextTokens>> OpenTokenCache(FileSystem& files,
                                                                 const std::string& folder,
                                                                 const TokenCacheKey& key,
                                                                 int32_t ids);

class TokenCacheWriter {
 public:
  // Also removes unfinished files of this key that nobody wrote to for a day.
  static absl::StatusOr<std::unique_ptr<TokenCacheWriter>> Create(FileSystem& files,
                                                                  const std::string& folder,
                                                                  const TokenCacheKey& key);
  ~TokenCacheWriter();  // removes what Finish did not make whole
  absl::Status Append(std::span<const int32_t> tokens);
  absl::Status Finish();

 private:
  TokenCacheWriter(FileSystem& files, const std::string& folder, TokenCacheKey key);
  FileSystem& files_;
  const std::string folder_, unfinished_;
  const TokenCacheKey key_;
  std::unique_ptr<WritableFile> file_;
  uint64_t tokens_ = 0;
  uint32_t checksum_ = 0;
  bool finished_ = false;
};

// The file that ids are made of, for people.
struct EncodedFile {
  std::string where;  // "data.text.path = "/a/b""
  std::string name;   // "b"
  int64_t bytes = 0;  // as it is stored
};
// The next ids; `bytes` of the stored file were read for them and all before.
using TakeIds = absl::FunctionRef<absl::Status(std::span<const int32_t> ids, int64_t bytes)>;
// The kept tokens of a key; if there are none, those that `make` hands on in order, which are kept.
// Meanwhile it tells how much of the file is done: TellWork (base/threads/work_words.h), and a line
// of the log every 10 s.
// cache: as CacheFolder's argument. Errors of the cache name it, those of `make` stay.
absl::StatusOr<std::shared_ptr<const TextTokens>> MadeOnce(
    const std::string& cache, const EncodedFile& file, const TokenCacheKey& key, int32_t ids,
    absl::FunctionRef<absl::Status(TakeIds)> make);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_CACHE_TOKEN_CACHE_H_
