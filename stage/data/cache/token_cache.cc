#include "stage/data/cache/token_cache.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/threads/progress.h"
#include "base/threads/work_words.h"
#include "stage/data/cache/cache_folder.h"

namespace stagecoach {
namespace {

static_assert(std::endian::native == std::endian::little, "tokens are stored as memory has them");

constexpr std::string_view kCacheMagic = "SCTOKENS";
// A writer that lives appends within it.
constexpr std::chrono::hours kUnfinishedAge{24};
constexpr size_t kDigestDigits = 64;
constexpr std::chrono::seconds kLogEvery{10};
// Behind the tokens: magic, version, checksum of the tokens, their number, both digests, checksum of
// the footer so far.
constexpr size_t kCacheFooterBytes = 8 + 4 + 4 + 8 + 2 * kDigestDigits + 4;

template <typename Number>
void AppendNumber(Number number, std::string* bytes) {
  char raw[sizeof(number)];
  std::memcpy(raw, &number, sizeof(number));
  bytes->append(raw, sizeof(raw));
}

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string Footer(const TokenCacheKey& key, uint64_t tokens, uint32_t checksum) {
  std::string footer(kCacheMagic);
  AppendNumber(kTokenCacheVersion, &footer);
  AppendNumber(checksum, &footer);
  AppendNumber(tokens, &footer);
  footer += key.text + key.tokenizer;
  AppendNumber(Crc32c(BytesOf(footer)), &footer);
  return footer;
}

absl::Status NoCache(const std::string& path, absl::string_view reason) {
  return absl::NotFoundError(absl::StrCat(path, ": ", reason));
}

// With the nonce of its writer behind it.
std::string UnfinishedName(const TokenCacheKey& key) {
  return absl::StrCat(".", key.FileName(), "-");
}

// Those of stages that were killed. Failures are ignored: the next writer tries again.
void RemoveOldUnfinished(FileSystem& files, const std::string& folder, const TokenCacheKey& key) {
  namespace fs = std::filesystem;
  const absl::StatusOr<std::vector<std::string>> names = files.List(folder);
  if (!names.ok()) return;
  const fs::file_time_type oldest = fs::file_time_type::clock::now() - kUnfinishedAge;
  for (const std::string& name : *names) {
    if (!name.starts_with(UnfinishedName(key))) continue;
    const std::string path = absl::StrCat(folder, "/", name);
    std::error_code error;
    const fs::file_time_type written = fs::last_write_time(path, error);
    if (!error && written < oldest) files.RemoveAll(path).IgnoreError();
  }
}

class CachedTokens final : public TextTokens {
 public:
  CachedTokens(std::unique_ptr<ReadableFile> file, int64_t tokens)
      : file_(std::move(file)), tokens_(tokens) {}
  int64_t tokens() const override { return tokens_; }
  absl::Status Read(int64_t first, std::span<int32_t> into) const override {
    return file_->Read(first * static_cast<int64_t>(sizeof(int32_t)), std::as_writable_bytes(into));
  }
  // Whether they are those that were written, all of them ids of the tokenizer.
  absl::Status Check(const std::string& path, const TokenCacheKey& key, int32_t ids) const {
    std::vector<int32_t> piece(kProgressPieceBytes / sizeof(int32_t));
    uint32_t checksum = 0;
    for (int64_t at = 0; at < tokens_;) {
      const auto count = std::min<int64_t>(std::ssize(piece), tokens_ - at);
      const std::span<int32_t> some = std::span(piece).first(static_cast<size_t>(count));
      RETURN_IF_ERROR(Read(at, some));
      checksum = Crc32c(std::as_bytes(some), checksum);
      const bool good =
          std::all_of(some.begin(), some.end(), [ids](int32_t id) { return id >= 0 && id < ids; });
      if (!good) return NoCache(path, "has a token that is no id of the tokenizer");
      at += count;
      TickProgress();
    }
    std::string footer(kCacheFooterBytes, '\0');
    RETURN_IF_ERROR(file_->Read(tokens_ * static_cast<int64_t>(sizeof(int32_t)),
                                std::as_writable_bytes(std::span(footer))));
    return footer == Footer(key, static_cast<uint64_t>(tokens_), checksum)
               ? absl::OkStatus()
               : NoCache(path, "is damaged, or of something else");
  }

 private:
  const std::unique_ptr<ReadableFile> file_;
  const int64_t tokens_;
};

// Tells how much of a file is tokens.
class EncodingNews {
 public:
  explicit EncodingNews(const EncodedFile& file)
      : file_(file), what_(absl::StrCat("encodes ", file.name)) {
    spdlog::info("{}: makes tokens of {} bytes", file_.where, file_.bytes);
    Tell(0);
  }
  void Read(int64_t bytes) {
    Tell(bytes);
    const auto now = std::chrono::steady_clock::now();
    if (now - logged_ < kLogEvery) return;
    spdlog::info("{}: {} of {} bytes are tokens", file_.where, bytes, file_.bytes);
    logged_ = now;
  }

 private:
  void Tell(int64_t bytes) const { TellWork(ShareText(what_, bytes, file_.bytes)); }

  const EncodedFile& file_;
  const std::string what_;
  std::chrono::steady_clock::time_point logged_ = std::chrono::steady_clock::now();
};

}  // namespace

std::string TokenCacheKey::FileName() const {
  return absl::StrCat(
      Sha256Hex(absl::StrCat(kTokenCacheVersion, " ", text, " ", tokenizer)).substr(0, 32),
      ".tokens");
}

absl::StatusOr<std::unique_ptr<const TextTokens>> OpenTokenCache(FileSystem& files,
                                                                 const std::string& folder,
                                                                 const TokenCacheKey& key,
                                                                 int32_t ids) {
  const std::string path = absl::StrCat(folder, "/", key.FileName());
  absl::StatusOr<std::unique_ptr<ReadableFile>> file = files.Open(path);
  if (!file.ok()) return NoCache(path, file.status().message());
  const int64_t bytes = (*file)->size() - static_cast<int64_t>(kCacheFooterBytes);
  if (bytes < 0 || bytes % static_cast<int64_t>(sizeof(int32_t)) != 0) {
    return NoCache(path, "is torn");
  }
  auto cached = std::make_unique<CachedTokens>(*std::move(file),
                                               bytes / static_cast<int64_t>(sizeof(int32_t)));
  if (const absl::Status status = cached->Check(path, key, ids); !status.ok()) {
    return NoCache(path, status.message());
  }
  return cached;
}

TokenCacheWriter::TokenCacheWriter(FileSystem& files, const std::string& folder, TokenCacheKey key)
    : files_(files),
      folder_(folder),
      unfinished_(absl::StrCat(folder, "/", UnfinishedName(key), files.Nonce())),
      key_(std::move(key)) {}

TokenCacheWriter::~TokenCacheWriter() {
  if (!finished_ && file_ != nullptr) files_.RemoveAll(unfinished_).IgnoreError();
}

absl::StatusOr<std::unique_ptr<TokenCacheWriter>> TokenCacheWriter::Create(
    FileSystem& files, const std::string& folder, const TokenCacheKey& key) {
  RemoveOldUnfinished(files, folder, key);
  std::unique_ptr<TokenCacheWriter> writer(new TokenCacheWriter(files, folder, key));
  ASSIGN_OR_RETURN(writer->file_, files.Create(writer->unfinished_));
  return writer;
}

absl::Status TokenCacheWriter::Append(std::span<const int32_t> tokens) {
  checksum_ = Crc32c(std::as_bytes(tokens), checksum_);
  tokens_ += tokens.size();
  return file_->Append(std::as_bytes(tokens));
}

absl::Status TokenCacheWriter::Finish() {
  RETURN_IF_ERROR(file_->Append(BytesOf(Footer(key_, tokens_, checksum_))));
  RETURN_IF_ERROR(file_->Sync());
  RETURN_IF_ERROR(file_->Close());
  RETURN_IF_ERROR(files_.Rename(unfinished_, absl::StrCat(folder_, "/", key_.FileName())));
  finished_ = true;
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const TextTokens>> MadeOnce(
    const std::string& cache, const EncodedFile& file, const TokenCacheKey& key, int32_t ids,
    absl::FunctionRef<absl::Status(TakeIds)> make) {
  FileSystem& files = *PosixFileSystem();
  ASSIGN_OR_RETURN(const std::string folder, CacheFolder(files, cache));
  absl::StatusOr<std::unique_ptr<const TextTokens>> kept = OpenTokenCache(files, folder, key, ids);
  if (kept.ok()) return *std::move(kept);
  const auto in_cache = [&folder](const absl::Status& status) {
    return CacheError(folder, status);
  };
  absl::StatusOr<std::unique_ptr<TokenCacheWriter>> writer =
      TokenCacheWriter::Create(files, folder, key);
  RETURN_IF_ERROR(in_cache(writer.status()));
  EncodingNews news(file);
  RETURN_IF_ERROR(make([&](std::span<const int32_t> some, int64_t bytes) {
    news.Read(bytes);
    return in_cache((*writer)->Append(some));
  }));
  RETURN_IF_ERROR(in_cache((*writer)->Finish()));
  kept = OpenTokenCache(files, folder, key, ids);
  if (!kept.ok()) return in_cache(absl::UnavailableError(kept.status().message()));
  spdlog::info("{}: has {} tokens", file.where, (*kept)->tokens());
  return *std::move(kept);
}

}  // namespace stagecoach
