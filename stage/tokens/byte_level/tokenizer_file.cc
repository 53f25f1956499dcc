#include "stage/tokens/byte_level/tokenizer_file.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/json/json_field.h"
#include "base/utf8.h"

namespace stagecoach {
namespace {

constexpr size_t kMostMerges = size_t{1} << 22;
constexpr char kVersionLine[] = "#version";

absl::Status CheckModelFields(const JsonField& model) {
  for (const char* const name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const JsonField field = model.Of(name);
    if (field.missing()) continue;
    ASSIGN_OR_RETURN(const std::string text, field.Text());
    if (!text.empty()) return field.Refused("is not supported; must be null or empty");
  }
  const JsonField dropout = model.Of("dropout");
  const bool none =
      dropout.missing() || (dropout.value()->is_number() && dropout.value()->get<double>() == 0);
  if (!none) return dropout.Refused("is not supported, as ids would be random; must be null or 0");
  return absl::OkStatus();
}

using PiecePair = std::pair<std::string_view, std::string_view>;

// "a b", or ["a", "b"]; views of the document. nullopt: it is neither.
std::optional<PiecePair> PairOfMerge(const nlohmann::json& value) {
  if (value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_string()) {
    return PiecePair(value[0].get_ref<const std::string&>(),
                     value[1].get_ref<const std::string&>());
  }
  if (!value.is_string()) return std::nullopt;
  const std::string_view text = value.get_ref<const std::string&>();
  const size_t space = text.find(' ');
  if (space == text.npos || text.find(' ', space + 1) != text.npos) return std::nullopt;
  return PiecePair(text.substr(0, space), text.substr(space + 1));
}

// The merge that PairOfMerge does not take.
absl::Status NoMerge(const JsonField& field) {
  if (field.is_array() && field.value()->size() == 2) {
    RETURN_IF_ERROR(field.At(0).Text().status());
    RETURN_IF_ERROR(field.At(1).Text().status());
  }
  return field.Refused("must be two pieces, \"a b\" or [\"a\", \"b\"]");
}

absl::StatusOr<std::vector<BpeMerges::Merge>> ReadMerges(const JsonField& field,
                                                         const Vocabulary& ids) {
  if (!field.is_array() || field.value()->size() > kMostMerges) {
    return field.Refused(absl::StrCat("must be an array of ", kMostMerges, " merges at most"));
  }
  std::vector<BpeMerges::Merge> merges;
  merges.reserve(field.value()->size());
  std::string joined;
  for (size_t i = 0; i < field.value()->size(); ++i) {
    const nlohmann::json& item = (*field.value())[i];
    if (item.is_string() && item.get_ref<const std::string&>().starts_with(kVersionLine)) continue;
    const std::optional<PiecePair> pair = PairOfMerge(item);
    if (!pair.has_value()) return NoMerge(field.At(i));
    joined.assign(pair->first).append(pair->second);
    BpeMerges::Merge merge;
    for (const auto& [text, id] :
         {std::pair(pair->first, &merge.left), std::pair(pair->second, &merge.right),
          std::pair(std::string_view(joined), &merge.joined)}) {
      const auto found = ids.find(text);
      if (found == ids.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat(field.At(i).path(), ": \"", ShownName(pair->first), " ",
                         ShownName(pair->second), "\": \"", ShownName(text),
                         "\" is not in model.vocab; the file may be damaged: "
                         "fetch it again"));
      }
      *id = found->second;
    }
    merges.push_back(merge);
  }
  return merges;
}

absl::Status ReadRules(const JsonField& model, BpeRules* rules) {
  ASSIGN_OR_RETURN(rules->ignore_merges, model.Of("ignore_merges").Flag(false));
  ASSIGN_OR_RETURN(rules->byte_fallback, model.Of("byte_fallback").Flag(false));
  ASSIGN_OR_RETURN(rules->fuse_unknown, model.Of("fuse_unk").Flag(false));
  if (!model.Of("unk_token").missing()) {
    ASSIGN_OR_RETURN(rules->unknown, model.Of("unk_token").Text());
  }
  return absl::OkStatus();
}

absl::Status CheckDecoder(const JsonField& field) {
  ASSIGN_OR_RETURN(const std::string type, field.Type());
  if (type == "ByteLevel") return absl::OkStatus();
  if (type == "Sequence") {
    ASSIGN_OR_RETURN(const std::vector<JsonField> items, field.Of("decoders").Items());
    if (items.size() == 1) return CheckDecoder(items.front());
    return field.Of("decoders").Refused("must be one decoder, ByteLevel");
  }
  return field.Of("type").Refused("is not supported: the decoder must be ByteLevel");
}

}  // namespace

absl::StatusOr<TokenizerFile> ReadTokenizerFile(const JsonField& tokenizer,
                                                std::string_view config) {
  const JsonField model = tokenizer.Of("model");
  RETURN_IF_ERROR(CheckModelFields(model));
  TokenizerFile file;
  RETURN_IF_ERROR(ReadRules(model, &file.rules));
  ASSIGN_OR_RETURN(file.normalizer, UnicodeNormalizer::Make(tokenizer.Of("normalizer")));
  ASSIGN_OR_RETURN(file.pre_tokenizer, PreTokenizer::Make(tokenizer.Of("pre_tokenizer")));
  RETURN_IF_ERROR(CheckDecoder(tokenizer.Of("decoder")));
  ASSIGN_OR_RETURN(Vocabulary ids, ReadVocabulary(model.Of("vocab"), &file.tokens));
  ASSIGN_OR_RETURN(file.merges, ReadMerges(model.Of("merges"), ids));
  RETURN_IF_ERROR(ReadOtherTokens(tokenizer, config, &ids, &file.tokens));
  if (file.rules.unknown) {
    if (const auto found = ids.find(*file.rules.unknown); found != ids.end()) {
      file.unknown = found->second;
    }
  }
  return file;
}

}  // namespace stagecoach
