// The reader of data.json_lines (plan/data/json_lines.h). Each file's tokens are made once and kept
// (stage/data/cache/token_cache.h).
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/files/line_reader.h"
#include "base/threads/progress.h"
#include "plan/data/json_lines.h"
#include "plan/data/token_inputs.h"
#include "stage/data/cache/token_cache.h"
#include "stage/data/formats/json_document.h"
#include "stage/data/formats/line_file.h"
#include "stage/data/open_source.h"
#include "stage/data/opened_text.h"
#include "stage/data/sequence_source.h"
#include "stage/tokens/text_lines.h"

namespace stagecoach {
namespace {

// Raise it when the same files give other tokens.
constexpr int kJsonLinesVersion = 1;
constexpr size_t kMostJsonLine = size_t{64} << 20;
constexpr size_t kIdsAtOnce = size_t{256} << 10;

class JsonLinesReader {
 public:
  // tokenizer: null for bytes.
  JsonLinesReader(const JsonLinesData& data, const Tokenizer* tokenizer, const DataRoots& roots)
      : data_(data), tokenizer_(tokenizer), roots_(roots) {}

  absl::StatusOr<OpenedTokens> Open(const std::string& field, const std::string& path) const {
    ASSIGN_OR_RETURN(std::unique_ptr<OpenedFile> file, OpenedFile::Open(roots_, field, path));
    OpenedTokens opened{.where = file->Where(), .bytes = file->size()};
    ASSIGN_OR_RETURN(opened.sha256, file->Digest());
    const TokenCacheKey key{.text = opened.sha256, .tokenizer = Sha256Hex(Facts())};
    const auto make = [&](TakeIds take) -> absl::Status {
      ASSIGN_OR_RETURN(const auto lines, LineFile::Open(roots_, field, path, JsonRules()));
      RETURN_IF_ERROR(ReadAll(*lines, 0, take).status());
      return file->CheckUnchanged();
    };
    const EncodedFile encoded{file->Where(), file->name(), file->size()};
    ASSIGN_OR_RETURN(opened.tokens, MadeOnce(roots_.cache_folder(), encoded, key, ids(), make));
    return opened;
  }

  // Keeps nothing, and encodes what a user waits for.
  absl::StatusOr<OpenedTokens> Survey(const std::string& field, const std::string& path) const {
    ASSIGN_OR_RETURN(const auto lines, LineFile::Open(roots_, field, path, JsonRules()));
    std::vector<int32_t> all;
    const auto take = [&all](std::span<const int32_t> ids, int64_t) {
      all.insert(all.end(), ids.begin(), ids.end());
      return absl::OkStatus();
    };
    OpenedTokens opened{.where = lines->Where(), .bytes = lines->stored_bytes()};
    ASSIGN_OR_RETURN(opened.whole, ReadAll(*lines, kMostEncodedInSurvey, take));
    opened.documents = std::count(all.begin(), all.end(), end());
    opened.tokens = IdsInMemory(std::move(all));
    return opened;
  }

  int32_t end() const { return tokenizer_ == nullptr ? kEndOfBytes : tokenizer_->end(); }
  int32_t ids() const { return tokenizer_ == nullptr ? 256 : tokenizer_->ids(); }
  // What the tokens depend on beside the file.
  std::string Facts() const {
    return absl::StrCat("json_lines ", kJsonLinesVersion, " ", kTokenCacheVersion, "\ntokenizer ",
                        tokenizer_ == nullptr ? "bytes" : tokenizer_->digest(), "\nfield ",
                        data_.field, "\n");
  }

 private:
  static LineRules JsonRules() {
    return {.check_head = CheckJsonLinesHead,
            .most_bytes = kMostJsonLine,
            .shorten = "cut the document"};
  }

  // Hands on the tokens of all documents. False: it read `most` bytes and the file goes on.
  absl::StatusOr<bool> ReadAll(LineFile& lines, int64_t most, TakeIds take) const {
    std::vector<int32_t> buffered;
    int64_t bytes = 0;
    bool whole = true;
    while (whole) {
      ASSIGN_OR_RETURN(const std::optional<std::string_view> line, lines.Next());
      if (!line.has_value()) break;
      TickProgress();
      RETURN_IF_ERROR(Annotate(AddDocument(*line, &buffered), lines.WhereLine()));
      bytes += std::ssize(*line);
      whole = most == 0 || bytes < most;
      if (buffered.size() < kIdsAtOnce) continue;
      RETURN_IF_ERROR(take(buffered, lines.read_bytes()));
      buffered.clear();
    }
    RETURN_IF_ERROR(take(buffered, lines.read_bytes()));
    return whole;
  }

  absl::Status AddDocument(std::string_view line, std::vector<int32_t>* ids) const {
    if (line.find_first_not_of(" \t\r") == line.npos) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::string document, JsonDocument(line, data_.field));
    if (document.empty()) return absl::OkStatus();
    if (tokenizer_ == nullptr) {
      for (const char byte : document) ids->push_back(static_cast<uint8_t>(byte));
    } else {
      for (std::string_view rest = document; !rest.empty();) {
        TextCut cut{.part = rest.size(), .next = rest.size()};
        if (rest.size() > kMostPartBytes) {
          cut = CutText(rest, kMostPartBytes, tokenizer_->cut_space());
        }
        ASSIGN_OR_RETURN(const auto some, tokenizer_->Encode(rest.substr(0, cut.part)));
        ids->insert(ids->end(), some.begin(), some.end());
        rest.remove_prefix(cut.next);
        TickProgress();
      }
    }
    ids->push_back(end());
    return absl::OkStatus();
  }

  const JsonLinesData& data_;
  const Tokenizer* const tokenizer_;
  const DataRoots& roots_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> JsonLinesDataSource(const JobSpec& spec,
                                                                 const Network& network,
                                                                 std::span<const std::string>,
                                                                 const DataRoots& roots,
                                                                 SourceLook look) {
  const auto data = spec.data.As<JsonLinesData>();
  ASSIGN_OR_RETURN(const auto tokenizer,
                   OpenTokenizer(spec, "data.json_lines.tokenizer", data.tokenizer,
                                 VocabularyOf(network), roots));
  const JsonLinesReader reader(data, tokenizer.get(), roots);
  const auto open = [&](const std::string& field, const std::string& path) {
    return look == SourceLook::kSurvey ? reader.Survey(field, path) : reader.Open(field, path);
  };
  TokenFiles files{.prefix = "data.json_lines", .digest_facts = reader.Facts()};
  if (data.packed) files.document_end = reader.end();
  ASSIGN_OR_RETURN(files.masked,
                   MaskedTokensOf(spec, network, "data.json_lines", data.masked, tokenizer.get()));
  if (files.masked.has_value()) files.digest_facts += files.masked->facts();
  ASSIGN_OR_RETURN(files.train, OpenEach(files.prefix + ".files", data.files, open));
  ASSIGN_OR_RETURN(files.test, OpenEach(files.prefix + ".test", data.test, open));
  return SourceOfFiles(spec, network, std::move(files));
}

}  // namespace stagecoach
