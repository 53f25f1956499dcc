#include "plan/data/json_lines.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "base/files/file_kind.h"
#include "base/files/gzip.h"
#include "base/utf8.h"
#include "plan/data/text_file.h"
#include "plan/data/token_inputs.h"
#include "plan/job/data_kinds.h"

namespace stagecoach {
namespace {

constexpr char kJsonLines[] = "data.json_lines";

class JsonLines final : public FieldKindOf<DataKind, JsonLinesData> {
 public:
  std::vector<DataInput> Inputs() const override {
    return TokenInputs({.documents = true, .masks = true});
  }

  std::vector<std::string> FileFields() const override { return {"files", "tokenizer", "test"}; }

  absl::Status CheckInputs(const DataSpec& data, const Network& network) const override {
    const auto json = data.As<JsonLinesData>();
    if (json.files.empty()) {
      return FieldError(absl::StrCat(kJsonLines, ".files"), "[]",
                        "must name the files to train on");
    }
    RETURN_IF_ERROR(CheckMaskedInputs(kJsonLines, json.masked, json.tokenizer, network));
    if (json.packed && json.masked > 0) {
      return FieldError(
          absl::StrCat(kJsonLines, ".packed"), "true",
          "keeps documents apart in networks that look back, and masked tokens are for "
          "others: leave out one of the two");
    }
    RETURN_IF_ERROR(CheckPacked(kJsonLines, json.packed, network));
    constexpr int64_t kBytes = 256;
    if (!json.tokenizer.empty() || VocabularyOf(network) >= kBytes) return absl::OkStatus();
    return FieldError(absl::StrCat(kJsonLines, ".tokenizer"), "not given",
                      absl::StrCat("the bytes are the tokens, and the network's vocabulary is ",
                                   VocabularyOf(network), ": set it to at least ", kBytes,
                                   ", or give a tokenizer"));
  }

  absl::Status CheckFile(const JobSpec& spec, const Network&, const DataFile& file,
                         std::string_view head, int64_t) const override {
    const std::string where =
        absl::StrCat(DataFieldPath(spec.data, file), " = \"", ShownName(file.path), "\"");
    if (file.field != "tokenizer") return CheckJsonLinesHead(where, head);
    return CheckTokenizerHead(where, head);
  }
};

}  // namespace

absl::Status CheckJsonLinesHead(const std::string& where, std::string_view head) {
  constexpr char kGive[] = "give a file with a JSON object a line";
  if (head.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": the file is empty; ", kGive));
  }
  if (LooksLikeGzip(head)) return absl::OkStatus();
  if (const auto kind = PlainlyNotText(head.substr(0, kTextCheckBytes)); kind.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": looks like ", kind->name,
                                                   " and not like JSON; ",
                                                   kind->remedy.empty() ? kGive : kind->remedy));
  }
  const size_t first = head.find_first_not_of(" \t\r\n");
  if (first == head.npos || head[first] == '{') return absl::OkStatus();
  const bool array = head[first] == '[';
  return absl::InvalidArgumentError(absl::StrCat(
      where, ": begins with ", array ? "a JSON array" : "something else than a JSON object", "; ",
      kGive, array ? ", as jq -c '.[]' makes it" : ""));
}

const DataKind* JsonLinesDataKind() {
  static const auto* const kind = new JsonLines;
  return kind;
}

}  // namespace stagecoach
