#include "stage/data/parallel/job_tokenizer.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "stage/data/formats/opened_tokenizer.h"

namespace stagecoach {
namespace {

absl::Status CheckVocabulary(const std::string& where, const Tokenizer& tokenizer,
                             const JobSpec& spec, const Network& network) {
  for (const char* const name : {"source", "tokens", "targets"}) {
    const WireId input = network.InputNamed(name);
    if (!input.valid() || tokenizer.Fits(network.input(input).classes)) continue;
    const std::string field = absl::StrCat("model.", spec.network.kind, ".vocabulary");
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": has ", tokenizer.ids(), " pieces, the network's ", name, " ",
                     network.input(input).classes, "; set ", field, " to ", tokenizer.ids(),
                     " or give another tokenizer"));
  }
  return absl::OkStatus();
}

const char* RemedyForMarks(const Tokenizer& tokenizer) {
  return tokenizer.of_json()
             ? "name bos_token, eos_token and pad_token in tokenizer_config.json beside it"
             : "train one that has it (stagecoach tokenizer train, or spm_train with --bos_id, "
               "--eos_id and --pad_id)";
}

absl::Status CheckMarks(const std::string& where, const Tokenizer& tokenizer,
                        const Network& network) {
  for (const auto& [name, id] :
       {std::pair("begin of sentence", tokenizer.begin()),
        std::pair("end of sentence", tokenizer.end()), std::pair("padding", tokenizer.pad())}) {
    if (id >= 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": has no piece for ", name, "; ", RemedyForMarks(tokenizer)));
  }
  if (tokenizer.pad() == tokenizer.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, ": its id ", tokenizer.pad(),
        " is padding and end of sentence, so no network would learn where a sentence ends; ",
        RemedyForMarks(tokenizer)));
  }
  if (network.objective.ignored == tokenizer.pad()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(where, ": its padding has id ", tokenizer.pad(),
                   ", the network's objective ignores ", network.objective.ignored.value_or(-1),
                   "; set model.objective.cross_entropy.ignore_index: ", tokenizer.pad()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Tokenizer>> OpenJobTokenizer(const JobSpec& spec,
                                                                  const Network& network,
                                                                  const DataRoots& roots,
                                                                  const std::string& path) {
  ASSIGN_OR_RETURN(OpenedTokenizer opened,
                   OpenTokenizerFile(roots, "data.parallel_text.tokenizer", path));
  RETURN_IF_ERROR(CheckVocabulary(opened.where, *opened.tokenizer, spec, network));
  RETURN_IF_ERROR(CheckMarks(opened.where, *opened.tokenizer, network));
  return std::move(opened.tokenizer);
}

absl::StatusOr<int32_t> TagId(const Tokenizer& tokenizer, const std::string& field,
                              const std::string& tag) {
  for (int32_t id = 0; id < tokenizer.ids(); ++id) {
    const Piece& piece = tokenizer.piece(id);
    const bool usable = piece.type == PieceType::kUserDefined ||
                        piece.type == PieceType::kControl || piece.type == PieceType::kNormal;
    if (!usable || piece.text != tag) continue;
    if (id != tokenizer.pad() && id != tokenizer.begin() && id != tokenizer.end()) return id;
    return FieldError(field, absl::StrCat("\"", ShownName(tag), "\""),
                      "is padding or an end of a sentence: give a piece for the language");
  }
  ASSIGN_OR_RETURN(const std::vector<int32_t> ids, Annotate(tokenizer.Encode(tag), field));
  std::string pieces;
  for (const int32_t id : ids) {
    absl::StrAppend(&pieces, pieces.empty() ? "" : " ", ShownName(tokenizer.piece(id).text));
  }
  return FieldError(
      field, absl::StrCat("\"", ShownName(tag), "\""),
      absl::StrCat("must be one piece of the tokenizer, which splits it into ", pieces,
                   tokenizer.of_json()
                       ? ": add it to the tokenizer (add_tokens of the library `tokenizers`)"
                       : ": train it with the tag as a symbol (stagecoach tokenizer train "
                         "--user-symbols)"));
}

}  // namespace stagecoach
