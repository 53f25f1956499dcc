#include <algorithm>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/threads/progress.h"
#include "plan/data/text.h"
#include "plan/data/text_file.h"
#include "stage/data/cache/token_cache.h"
#include "stage/data/formats/data_file.h"
#include "stage/data/formats/opened_tokenizer.h"
#include "stage/data/opened_text.h"
#include "stage/tokens/text_lines.h"

namespace stagecoach {
namespace {

constexpr size_t kBufferedIds = size_t{256} << 10;

class KeptIds final : public TextTokens {
 public:
  explicit KeptIds(std::vector<int32_t> ids) : ids_(std::move(ids)) {}
  int64_t tokens() const override { return std::ssize(ids_); }
  absl::Status Read(int64_t first, std::span<int32_t> into) const override {
    const auto some = std::span(ids_).subspan(static_cast<size_t>(first), into.size());
    std::copy(some.begin(), some.end(), into.begin());
    return absl::OkStatus();
  }

 private:
  const std::vector<int32_t> ids_;
};

// The file's bytes again, from its beginning.
class Rereader {
 public:
  Rereader(const OpenedFile& file, int64_t most) : file_(file), most_(most) {}
  absl::StatusOr<size_t> Next(std::span<uint8_t> into) {
    const auto count = std::min<int64_t>(std::ssize(into), most_ - read_);
    RETURN_IF_ERROR(file_.ReadAt(read_, into.first(static_cast<size_t>(count))));
    TickProgress();
    read_ += count;
    return static_cast<size_t>(count);
  }
  int64_t read() const { return read_; }

 private:
  const OpenedFile& file_;
  const int64_t most_;
  int64_t read_ = 0;
};

// Encodes the first `most` bytes; `take` gets the ids in order. Errors of the file and of `take`
// name their own places, all others the text.
absl::Status EncodeAll(const OpenedFile& file, int64_t most, const Tokenizer& tokenizer,
                       TakeIds take) {
  Rereader read(file, most);
  std::vector<int32_t> buffered;
  absl::Status named;  // an error that is not annotated
  const auto take_part = [&](std::string_view part, bool ends) -> absl::Status {
    ASSIGN_OR_RETURN(const std::vector<int32_t> ids, tokenizer.Encode(part));
    buffered.insert(buffered.end(), ids.begin(), ids.end());
    if (ends) buffered.push_back(tokenizer.end());
    TickProgress();
    if (buffered.size() < kBufferedIds) return absl::OkStatus();
    RETURN_IF_ERROR(named = take(buffered, read.read()));
    buffered.clear();
    return absl::OkStatus();
  };
  const auto read_more = [&](std::span<uint8_t> into) {
    absl::StatusOr<size_t> count = read.Next(into);
    named = count.status();
    return count;
  };
  const absl::Status status = tokenizer.line_ends() ? ReadText(read_more, kMostPartBytes, take_part)
                                                    : ReadLines(read_more, kMostPartBytes,
                                                                take_part, tokenizer.cut_space());
  RETURN_IF_ERROR(named);
  RETURN_IF_ERROR(Annotate(status, file.Where()));
  return take(buffered, read.read());
}

absl::Status CheckHead(const OpenedFile& file, const TextData& data, const std::string& field) {
  std::string head(std::min(static_cast<size_t>(file.size()), kTextCheckBytes), '\0');
  RETURN_IF_ERROR(file.ReadAt(0, {reinterpret_cast<uint8_t*>(head.data()), head.size()}));
  return CheckIsText(data, head, field);
}

// Bytes of the text's beginning up to a line's end; of a longer line up to a character's.
int64_t WholeLines(std::string_view head) {
  if (const size_t end = head.rfind('\n'); end != head.npos) return static_cast<int64_t>(end) + 1;
  const auto continues = [](char byte) { return (static_cast<uint8_t>(byte) & 0xc0) == 0x80; };
  while (!head.empty() && continues(head.back())) head.remove_suffix(1);
  return std::max<int64_t>(0, std::ssize(head) - 1);  // without the last character's first byte
}

// Encodes what a user waits for.
absl::StatusOr<OpenedText> Survey(OpenedFile& file, const TextData& data, const std::string& field,
                                  const Tokenizer& tokenizer) {
  std::string head(static_cast<size_t>(std::min(file.size(), kMostEncodedInSurvey)), '\0');
  const std::span<uint8_t> bytes(reinterpret_cast<uint8_t*>(head.data()), head.size());
  RETURN_IF_ERROR(file.ReadAt(0, bytes));
  RETURN_IF_ERROR(CheckIsText(data, head, field));
  const int64_t most =
      head.size() < static_cast<size_t>(file.size()) ? WholeLines(head) : std::ssize(head);
  std::vector<int32_t> all;
  RETURN_IF_ERROR(EncodeAll(file, most, tokenizer, [&all](std::span<const int32_t> ids, int64_t) {
    all.insert(all.end(), ids.begin(), ids.end());
    return absl::OkStatus();
  }));
  return OpenedText{.tokens = IdsInMemory(std::move(all)),
                    .where = file.Where(),
                    .bytes = file.size(),
                    .seen_bytes = most};
}

}  // namespace

absl::StatusOr<OpenedText> OpenIdsOfText(const TextToOpen& ask, const Tokenizer& tokenizer) {
  const auto data = ask.spec->data.As<TextData>();
  ASSIGN_OR_RETURN(const std::unique_ptr<OpenedFile> file,
                   OpenedFile::Open(*ask.roots, absl::StrCat("data.text.", ask.field), ask.path));
  if (ask.most_bytes > 0) return Survey(*file, data, ask.field, tokenizer);
  OpenedText opened{.where = file->Where(), .bytes = file->size(), .seen_bytes = file->size()};
  RETURN_IF_ERROR(CheckHead(*file, data, ask.field));
  ASSIGN_OR_RETURN(opened.sha256, file->Digest());
  const TokenCacheKey key{.text = file->CacheKey(opened.sha256), .tokenizer = tokenizer.digest()};
  const auto make = [&](TakeIds take) -> absl::Status {
    RETURN_IF_ERROR(EncodeAll(*file, file->size(), tokenizer, take));
    return file->CheckUnchanged();
  };
  const EncodedFile encoded{file->Where(), file->name(), file->size()};
  ASSIGN_OR_RETURN(opened.tokens,
                   MadeOnce(ask.roots->cache_folder(), encoded, key, tokenizer.ids(), make));
  return opened;
}

std::shared_ptr<const TextTokens> IdsInMemory(std::vector<int32_t> ids) {
  return std::make_shared<KeptIds>(std::move(ids));
}

absl::StatusOr<std::unique_ptr<const Tokenizer>> OpenTokenizer(const JobSpec& spec,
                                                               const std::string& field,
                                                               const std::string& path,
                                                               int64_t vocabulary,
                                                               const DataRoots& roots) {
  if (path.empty()) return nullptr;
  ASSIGN_OR_RETURN(OpenedTokenizer opened, OpenTokenizerFile(roots, field, path));
  if (!opened.tokenizer->Fits(vocabulary)) {
    const std::string ids = absl::StrCat("model.", spec.network.kind, ".vocabulary");
    return absl::InvalidArgumentError(
        absl::StrCat(opened.where, ": has ", opened.tokenizer->ids(), " ids, and ", ids, " = ",
                     vocabulary, "; set ", ids, " to ", opened.tokenizer->ids(),
                     ", or give a tokenizer of ", vocabulary, " ids"));
  }
  if (opened.tokenizer->end() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        opened.where,
        ": has no end id (eos), which stands for the end of a line or document; give one that "
        "`stagecoach tokenizer train` wrote, or name eos_token in tokenizer_config.json"));
  }
  return std::move(opened.tokenizer);
}

}  // namespace stagecoach
